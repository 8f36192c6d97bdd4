/** The clusters that live registrations are from, each as often as it has pools. */
export class LiveClusters {
  readonly #pools = new Map<string, number>();

  /** Counts a pool more. Returns whether the cluster is new. */
  add(cluster: string): boolean {
    const pools = this.#pools.get(cluster) ?? 0;
    this.#pools.set(cluster, pools + 1);
    return pools === 0;
  }

  /** Counts a pool less. Returns whether it was the cluster's last. */
  remove(cluster: string): boolean {
    const pools = this.#pools.get(cluster) ?? 0;
    if (pools > 1) this.#pools.set(cluster, pools - 1);
    else this.#pools.delete(cluster);
    return pools === 1;
  }

  /** The longest cluster that a name begins with, a dash and something more behind it. */
  longestIn(name: string): string | undefined {
    const dashBefore = (end: number) => name.lastIndexOf("-", end - 1);
    for (let dash = dashBefore(name.length - 1); dash > 0; dash = dashBefore(dash)) {
      const cluster = name.slice(0, dash);
      if (this.#pools.has(cluster)) return cluster;
    }
    return undefined;
  }
}
