import { configure } from "arktype/config";

// Has to run before arktype itself is loaded. Compiling each of its own types to code would double the
// cost of the import.
configure({ jitless: true });
