import { configure } from "arktype/config";

// Has to run before arktype itself is loaded. Compiling each type to code would double the cost of
// the import and gain little for shapes as small as ours.
configure({ jitless: true });
