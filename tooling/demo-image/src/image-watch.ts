/** Follows builds and uploads, reports their states, and waits for them. */

import { type ImageBuild, type ImageUpload, systemClock } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { Narrator } from '@nodepool/harness';

export class ImageWatch {
  private readonly reported = new Map<string, string>();
  private readonly stopListening: () => void;

  constructor(
    private readonly store: Store,
    private readonly image: string,
    private readonly narrator: Narrator,
  ) {
    this.stopListening = store.images.onChange(() => this.report());
  }

  close(): void {
    this.stopListening();
  }

  get builds(): readonly ImageBuild[] {
    return this.store.images.builds(this.image);
  }

  get uploads(): readonly ImageUpload[] {
    return [...this.store.images.uploads({ image: this.image })];
  }

  /** Resolves with the newest build once it is ready and not in `others`. Rejects if it fails, or at the deadline. */
  build(others: readonly ImageBuild[], deadlineMs: number, interrupted: AbortSignal): Promise<ImageBuild> {
    const isOther = ({ id }: ImageBuild): boolean => others.some((other) => other.id === id);
    return this.until(`a build of ${this.image}`, deadlineMs, interrupted, () => {
      const build = this.builds.findLast((each) => !isOther(each));
      if (build?.state === 'failed') throw new Error(`build ${build.id} of ${this.image} failed`);
      return build?.state === 'ready' ? build : undefined;
    });
  }

  /** Resolves with an upload of the build once it is ready. The builder retries failed uploads. */
  upload(build: ImageBuild, deadlineMs: number, interrupted: AbortSignal): Promise<ImageUpload> {
    return this.until(`an upload of build ${build.id}`, deadlineMs, interrupted, () =>
      this.uploads.find((upload) => upload.build === build.id && upload.state === 'ready'),
    );
  }

  /** Resolves with the result of `look`, which is called at once and after every change, when it returns one. */
  until<T>(what: string, deadlineMs: number, interrupted: AbortSignal, look: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        stop();
        timer.cancel();
        interrupted.removeEventListener('abort', onAbort);
        finish();
      };
      const check = (): void => {
        try {
          const found = look();
          if (found !== undefined) settle(() => resolve(found));
        } catch (error) {
          settle(() => reject(error instanceof Error ? error : new Error(String(error))));
        }
      };
      const onAbort = (): void => settle(() => reject(interrupted.reason as Error));
      const timer = systemClock.schedule(deadlineMs, () =>
        settle(() => reject(new Error(`timeout after ${deadlineMs / 1000} s: waiting for ${what}`))),
      );
      const stop = this.store.images.onChange(check);
      interrupted.addEventListener('abort', onAbort, { once: true });
      if (interrupted.aborted) onAbort();
      else check();
    });
  }

  private report(): void {
    const now = new Map<string, string>();
    for (const { id, state } of this.builds) now.set(`build  ${id}`, state);
    for (const { id, build, provider, state, progress } of this.uploads) {
      const sent = progress === undefined || progress === null ? '' : ` (${progress} %)`;
      now.set(`upload ${id} of build ${build} to ${provider}`, `${state}${sent}`);
    }
    for (const [what, state] of now) if (this.reported.get(what) !== state) this.narrator.say(`${what}: ${state}`);
    for (const [what] of this.reported) if (!now.has(what)) this.narrator.say(`${what}: deleted`);
    this.reported.clear();
    for (const [what, state] of now) this.reported.set(what, state);
  }
}
