/** Uncontended lock directories whose request no longer exists, updated with every change. */
export class OrphanedLockIndex {
  private readonly directories = new Set<string>();
  private readonly orphans = new Set<string>();

  ids(): Iterable<string> {
    return this.orphans.values();
  }

  directoryAdded(id: string): void {
    this.directories.add(id);
  }

  directoryRemoved(id: string): void {
    this.directories.delete(id);
  }

  /**
   * Must be called with every change of the request or its lock. `inUse`: the request exists, or its lock is contended.
   * Returns true if the lock has become an orphan.
   */
  update(id: string, inUse: boolean): boolean {
    if (inUse || !this.directories.has(id)) {
      this.orphans.delete(id);
      return false;
    }
    const isNew = !this.orphans.has(id);
    this.orphans.add(id);
    return isNew;
  }
}
