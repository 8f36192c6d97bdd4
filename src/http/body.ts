import { ServiceError } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";

const JSON_TYPE = "application/json";
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The whole body of a request that carries JSON, as text. Never holds more than the limit; what a
 * client sends beyond it is dropped as it comes.
 *
 * @throws ServiceError `unsupported-media-type`, `too-large`, or `invalid` where it broke off or
 *   is not UTF-8
 */
export async function readJsonBody(request: Request): Promise<string> {
  requireJson(request.headers);
  let bytes: Uint8Array;
  try {
    bytes = await readBytes(request);
  } catch (error) {
    if (!request.signal.aborted) throw error;
    throw new ServiceError("invalid", "the request broke off");
  }
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw new ServiceError("invalid", "the body is not valid UTF-8");
  }
}

function readBytes(request: Request): Promise<Uint8Array> {
  const length = request.headers.get("content-length");
  // Reading as a stream costs a third of the throughput, so only where the length is not known.
  if (length === null) return readStream(request);
  if (Number(length) > limits.bodyBytes) throw tooLarge();
  return request.bytes();
}

function requireJson(headers: Headers): void {
  const type = headers.get("content-type");
  if (type !== JSON_TYPE && type?.split(";", 1)[0]?.trim().toLowerCase() !== JSON_TYPE) {
    throw new ServiceError("unsupported-media-type", `Content-Type must be ${JSON_TYPE}`);
  }
  const coding = headers.get("content-encoding");
  if (coding !== null && coding.toLowerCase() !== "identity") {
    throw new ServiceError("unsupported-media-type", "Content-Encoding must be left out");
  }
}

async function readStream(request: Request): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the stream.
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    if (bytes > limits.bodyBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(): ServiceError {
  return new ServiceError("too-large", `the body is over ${limits.bodyBytes} bytes`);
}
