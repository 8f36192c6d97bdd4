/** Every limit of the service, in one place. Units stand last in each name. */
export const limits = {
  /** Largest `POST /pools` body. */
  bodyBytes: 256 * 1024,
  /** Bodies up to this size are always received: what one connection may hold. */
  smallBodyBytes: 16 * 1024,
  /** Most bytes of larger bodies that are being received at a time. */
  largeBodiesBytes: 32 * 1024 * 1024,
  /** Longest part of a pool's key, in bytes of UTF-8. */
  keyPartBytes: 253,
  /** Longest encoded key: DynamoDB allows a sort key of 1,024 bytes. */
  sortKeyBytes: 1024,
  /** Most live pools; a new one above that is refused, renewals go on. */
  livePools: 100_000,
  /**
   * Most bytes of registrations held. Keeps memory bounded where each of them is large, and the list
   * of a size that can be made without keeping everyone waiting.
   */
  registrationBytes: 64 * 1024 * 1024,
  /** Largest `workers` of one capacity entry: what an unsigned 32-bit integer holds. */
  workers: 2 ** 32 - 1,
  /** Longest lease that can be asked for. */
  leaseSecs: 86_400,
  /** Longest replication grace that can be asked for. */
  replicationGraceSecs: 86_400,
  /** Longest plain-text reason of an error response. */
  reasonChars: 500,
  /** Longest reason why the service can't start. */
  startupErrorChars: 4000,
  /** Longest piece of a user's own input that a message repeats. */
  quotedChars: 60,
  /**
   * How long a connection may stay silent between two requests, and how long all of a request may
   * take: 10 s at least. Bun counts in steps of 4 s and may cut one step early, so it is told 13, and
   * cuts after 12 to 16. It counts from the last complete request: a trickled one is cut as well.
   */
  idleSecs: 13,
  /** Longest that a client may wait for a list to change; who asks for more waits so long. */
  waitSecs: 60,
  /** Most clients that wait, for all lists together; more are answered at once. */
  waiters: 10_000,
  /** How often a list that somebody waits for is looked at for what changes by time alone. */
  waitersLookMs: 100,
  /**
   * For how long a list is left alone after waiters were told it: nine times as long as that took, but
   * so long at least and at most. Bounds what it costs when lists change all the time.
   */
  waitersQuietMs: { least: 100, most: 2000 },
  /** How long waiters may be told a list before other requests have their turn. */
  waitersTurnMs: 10,
  /**
   * How often the files of TLS are looked at. What has changed must be served within 10 s, and is when
   * two looks have found the same.
   */
  tlsPollMs: 2000,
  /**
   * How long a listener that was replaced may still have connections: as long as a request may wait for
   * a change, be it answered at the last moment, and be silent after that.
   */
  retiredListenerMs: 90_000,
  /** How long running requests may go on after SIGTERM. */
  drainMs: 10_000,
  /** Bodies of this size and less are sent as they are: compressing them saves no packet. */
  uncompressedBytes: 1024,
  /** Most values of `Accept-Encoding` for which it is remembered what is sent. */
  knownAcceptEncodings: 100,
  /** How often the process looks whether it has been running. */
  beatMs: 250,
  /** A beat that comes later than this is a pause. */
  pauseMs: 1000,
  /** Most bytes of log lines that wait for a slow reader. */
  logBytes: 1024 * 1024,
  /** Most slices that are named as an example of many. */
  namedSlices: 10,
  /** How long it can be told why a pool has left, and of how many pools at most. */
  departedMs: 10 * 60_000,
  departedPools: 1000,
  /** Most pools that `GET /explain` tells of: twice as many as can live, for what is only imported. */
  explainedPools: 200_000,
  /** Most bytes of pools in `GET /explain`. */
  explainedBytes: 64 * 1024 * 1024,
  /** How long the last log lines may take to be written at the end. */
  logFlushMs: 1000,
  /** How often a warning about one and the same thing may be repeated. */
  warningEveryMs: 60_000,
  /**
   * How old a credential that was read from a file may be. A token that Kubernetes rotates has to be
   * in use within 95 s, and up to 30 s may pass between two requests.
   */
  credentialsMs: 60_000,
  /** How long a credential plugin of a kubeconfig may run. */
  execPluginMs: 60_000,
  /** Most bytes that are read of what a credential plugin writes. */
  execPluginBytes: 1024 * 1024,
  /** Largest page of a list of EndpointSlices, without its compression. */
  slicePageBytes: 128 * 1024 * 1024,
  /** Longest line of a watch: one object, of which etcd takes 1.5 MiB. */
  watchLineBytes: 8 * 1024 * 1024,
  /** Most bytes that are read of an API server's error. */
  apiErrorBytes: 64 * 1024,
  /** Longest piece of somebody else's message that a message of ours repeats. */
  repeatedChars: 300,
} as const;
