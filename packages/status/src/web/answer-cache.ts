/** Caches answers for a short time, so that many clients cost as little as one. */

import type { Clock, Timer } from '@nodepool/core';

export interface CachedAnswer {
  /** Time at which the answer was created, in milliseconds since the epoch. */
  readonly made: number;
  readonly body: string;
}

export class AnswerCache {
  private readonly answers = new Map<string, CachedAnswer & { readonly expires: number }>();
  private sweep: Timer | undefined;

  /** Creates a cache of the newest `maxAnswers` answers, each valid for `lifeMs` milliseconds. */
  constructor(
    private readonly clock: Clock,
    private readonly lifeMs: number,
    private readonly maxAnswers: number,
  ) {}

  /** Returns the cached answer to the question, or creates and caches the result of `make`. */
  get(question: string, make: () => string): CachedAnswer {
    const now = this.clock.monotonic();
    const kept = this.answers.get(question);
    if (kept !== undefined && now < kept.expires) return kept;
    this.answers.delete(question);
    const answer = { made: this.clock.now(), body: make(), expires: now + this.lifeMs };
    this.answers.set(question, answer);
    for (const oldest of this.answers.keys()) {
      if (this.answers.size <= this.maxAnswers) break;
      this.answers.delete(oldest);
    }
    // A sweep deletes expired answers, since a large one would otherwise stay in memory until the next question.
    this.sweep ??= this.clock.schedule(this.lifeMs, () => this.dropExpired(), { background: true });
    return answer;
  }

  clear(): void {
    this.sweep?.cancel();
    this.sweep = undefined;
    this.answers.clear();
  }

  private dropExpired(): void {
    this.sweep = undefined;
    const now = this.clock.monotonic();
    let next = Infinity;
    for (const [question, { expires }] of this.answers) {
      if (expires <= now) this.answers.delete(question);
      else next = Math.min(next, expires);
    }
    if (next < Infinity) this.sweep = this.clock.schedule(next - now, () => this.dropExpired(), { background: true });
  }
}
