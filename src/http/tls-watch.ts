import type { Cancel, Clock } from "../runtime/clock.ts";
import { Cooldown } from "../runtime/cooldown.ts";
import { messageOf } from "../runtime/errors.ts";
import { limits } from "../runtime/limits.ts";
import type { Log } from "../runtime/log.ts";
import {
  checkTls,
  readTlsTexts,
  type Tls,
  type TlsPaths,
  type TlsTexts,
  tlsOptions,
} from "./tls.ts";

/** The files of TLS, and what they held when they were opened. */
export interface TlsFiles {
  readonly options: Bun.TLSOptions;
  /**
   * Looks at the files again and again, and calls `serve` when they hold something else that can be
   * served. What that throws is warned of, and it is called again.
   */
  watch(serve: (options: Bun.TLSOptions) => Promise<void>): Cancel;
}

export interface Surroundings {
  readonly clock: Clock;
  readonly log: Log;
  /** How the files are read. */
  readonly read?: () => Promise<TlsTexts>;
}

/**
 * Reads the files of TLS.
 *
 * @throws ServiceError `startup`, naming the flag and the file at fault
 */
export async function openTls(
  paths: TlsPaths,
  { clock, log, read = () => readTlsTexts(paths) }: Surroundings,
): Promise<TlsFiles> {
  const opened = checkTls(await read(), paths);
  return {
    options: tlsOptions(opened),
    watch: (serve) => watchTls(paths, opened, serve, { clock, log, read }),
  };
}

/**
 * Files are replaced one after the other, or while they are read. So what is found counts only when
 * the next look finds the same: half a bundle, or a certificate beside the key of the one before, is
 * neither served nor warned of where it is gone by then.
 */
function watchTls(
  paths: TlsPaths,
  opened: Tls,
  serve: (options: Bun.TLSOptions) => Promise<void>,
  { clock, log, read }: Required<Surroundings>,
): Cancel {
  let serving = opened;
  let before: Found = opened;
  const refusals = new Cooldown(clock);
  const validity = new Cooldown(clock);
  let isLooking = false;

  const look = async () => {
    const found = await read().catch(messageOf);
    const isSettled = isSame(found, before);
    before = found;
    if (!isSettled || isSame(found, serving)) return;
    try {
      if (typeof found === "string") throw new Error(found);
      const tls = checkTls(found, paths);
      await serve(tlsOptions(tls));
      serving = tls;
      log.info("the TLS files have changed; new connections are served with them", {
        valid_until: new Date(tls.notAfterMs).toISOString(),
      });
    } catch (error) {
      if (!refusals.restart()) return;
      log.warn(
        "the TLS files as they are now can't be served; what they held before is, until they are mended",
        { problem: messageOf(error) },
      );
    }
  };
  const checkValidity = () => {
    const { notBeforeMs, notAfterMs } = serving;
    const nowMs = clock.wallMs();
    if ((notBeforeMs <= nowMs && nowMs <= notAfterMs) || !validity.restart()) return;
    log.warn(
      "the TLS certificate is not valid now, and clients will refuse it; put a valid one there",
      {
        file: paths.certPath,
        valid_from: new Date(notBeforeMs).toISOString(),
        valid_until: new Date(notAfterMs).toISOString(),
      },
    );
  };

  checkValidity();
  return clock.every(limits.tlsPollMs, async () => {
    checkValidity();
    // A file system that hangs must not gather looks.
    if (isLooking) return;
    isLooking = true;
    await look();
    isLooking = false;
  });
}

/** The texts of the files, or why they can't be read. */
type Found = TlsTexts | string;

function isSame(a: Found, b: Found): boolean {
  if (typeof a === "string" || typeof b === "string") return a === b;
  return a.cert === b.cert && a.key === b.key && a.clientCa === b.clientCa;
}
