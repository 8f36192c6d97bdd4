import { dlopen, ptr } from "bun:ffi";
import { readdirSync } from "node:fs";

/**
 * What the system can be told about the sockets on which this process listens, and Bun doesn't know
 * of. Loaded only when a listener is replaced.
 */
export interface ListeningSockets {
  /**
   * Lets further listeners of this process take the same address.
   *
   * @returns whether the system does
   */
  share(): boolean;
  /**
   * Gives all new connections to one of the listeners that share an address: the one with this index
   * in the order in which they came, where each that went left its place to the last.
   *
   * @returns whether the system does
   */
  direct(index: number): boolean;
}

// From the headers of Linux for x86-64 and arm64.
const SOL_SOCKET = 1;
const SO_REUSEPORT = 15;
const SO_ACCEPTCONN = 30;
const SO_ATTACH_REUSEPORT_CBPF = 51;
/** `BPF_RET | BPF_K`: the program's one instruction, which returns a constant. */
const RETURN_CONSTANT = 0x06;

/** The C library's names: glibc's, and musl's. */
const LIBRARIES = [
  "libc.so.6",
  `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`,
];

/** The listening sockets of this process; undefined where the system doesn't let them be told. */
export function listeningSockets(): ListeningSockets | undefined {
  const c = openC();
  if (c === undefined || process.platform !== "linux") return undefined;
  const set = (fd: number, option: number, value: Uint8Array | Int32Array) =>
    c.setsockopt(fd, SOL_SOCKET, option, value, value.byteLength) === 0;
  return {
    share() {
      const fds = listeningFds(c);
      return fds.length > 0 && fds.every((fd) => set(fd, SO_REUSEPORT, Int32Array.of(1)));
    },
    direct(index) {
      const [fd] = listeningFds(c);
      if (fd === undefined) return false;
      // struct sock_filter { u16 code; u8 jt, jf; u32 k; }
      const instruction = new DataView(new ArrayBuffer(8));
      instruction.setUint16(0, RETURN_CONSTANT, true);
      instruction.setUint32(4, index, true);
      // struct sock_fprog { u16 len; struct sock_filter *filter; }
      const program = new DataView(new ArrayBuffer(16));
      program.setUint16(0, 1, true);
      program.setBigUint64(8, BigInt(ptr(instruction)), true);
      return set(fd, SO_ATTACH_REUSEPORT_CBPF, new Uint8Array(program.buffer));
    },
  };
}

type C = NonNullable<ReturnType<typeof openC>>;

function openC() {
  for (const library of LIBRARIES) {
    try {
      return dlopen(library, {
        setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
        getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
      }).symbols;
    } catch {
      // Another system has the other one.
    }
  }
  return undefined;
}

/** All that this process listens on, which is one address only. */
function listeningFds(c: C): number[] {
  const value = Int32Array.of(0);
  const bytes = Int32Array.of(value.byteLength);
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((fd) => {
      const found = c.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, value, bytes) === 0;
      return found && value[0] === 1;
    });
}
