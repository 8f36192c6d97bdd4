/**
 * The requests to etcd that are measured, as gRPC sends them: a message in Protocol Buffers behind five
 * bytes of its compression (none) and length. Field numbers are those of etcd's rpc.proto.
 */

export interface Put {
  readonly key: string;
  readonly value: string;
  readonly lease: number;
}

/** `PutRequest` */
export function putFrame({ key, value, lease }: Put): Uint8Array {
  return frame([...bytesField(1, key), ...bytesField(2, value), ...numberField(3, lease)]);
}

/** `LeaseKeepAliveRequest` */
export function keepAliveFrame(lease: number): Uint8Array {
  return frame(numberField(1, lease));
}

/** `RangeRequest` for all keys from `key` on, up to `end`, without that */
export function rangeFrame(key: string, end: string): Uint8Array {
  return frame([...bytesField(1, key), ...bytesField(2, end)]);
}

function frame(message: readonly number[]): Uint8Array {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, Uint8Array.from(message)]);
}

const [VARINT, LENGTH_DELIMITED] = [0, 2];

function bytesField(field: number, text: string): number[] {
  const bytes = Buffer.from(text);
  return [(field << 3) | LENGTH_DELIMITED, ...varint(bytes.length), ...bytes];
}

function numberField(field: number, value: number): number[] {
  return [(field << 3) | VARINT, ...varint(value)];
}

/** Seven bits at a time, the low ones first. */
function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}
