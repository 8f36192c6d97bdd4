/** What is used of negotiator 1.1.0, whose published types are of an older version. */
declare module "negotiator" {
  class Negotiator {
    constructor(request: { readonly headers: Readonly<Record<string, string>> });
    /** Of `available`, what the client accepts, its favourite first; `preferred` breaks ties. */
    encodings(available: string[], options: { readonly preferred: string[] }): string[];
  }
  export = Negotiator;
}
