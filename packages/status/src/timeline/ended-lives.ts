/** The most recently ended lives, by id. */

export class EndedLives<L> {
  /** In the order of their end. */
  private readonly lives = new Map<string, L>();

  constructor(private readonly limit: number) {}

  add(id: string, life: L): void {
    this.lives.delete(id);
    this.lives.set(id, life);
    for (const oldest of this.lives.keys()) {
      if (this.lives.size <= this.limit) break;
      this.lives.delete(oldest);
    }
  }

  remove(id: string): void {
    this.lives.delete(id);
  }

  get(id: string): L | undefined {
    return this.lives.get(id);
  }

  /** Returns the lives, most recently ended first. */
  newestFirst(): L[] {
    return [...this.lives.values()].reverse();
  }
}
