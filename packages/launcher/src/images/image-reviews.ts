/**
 * Moves new uploads from stage to stage: launch test, trial, promotion or rejection. The launchers that serve a
 * provider elect one of them for its uploads. Without tests in the configuration, no launcher runs for election.
 */

import { hasImageTests, linkSignals, newReview, NO_IMAGE_TESTS, trustedReview, WorkQueue } from '@nodepool/core';
import type { ImageTests, ImageUpload, LaunchTestConfig, Logger, Reconciled, Reconciliation } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { ELECTIONS_ROOT, pathOf, type NodeEntry } from '@nodepool/store';
import { election, lockRecipe, type Election, type LockRecipe } from '@nodepool/zookeeper';
import { type LauncherContext, unixSeconds } from '../context.js';
import type { Controller } from '../controller.js';
import { keyOf, newTrial, observe, type Observation } from './canary-test.js';
import { labelToTest, testLaunch, type LaunchTestResult } from './launch-test.js';
import { observationsOf } from './observations.js';
import { planReview, type ReviewStep } from './review-plan.js';
import { advance, writeReview } from './review-writer.js';

/** Delay (ms) after which observations are written, so that one write has those of many nodes. */
const BATCH_MS = 2000;
/** Delay (ms) of the next attempt after a launch test that failed once or says nothing, and after a conflict. */
const RETRY_MS = 60_000;
const CONFLICT_MS = 1000;
/** Failed launch tests after which an upload is rejected. */
const MAX_FAILURES = 2;
/** Time (seconds) for which an observation of a deleted node is known, so that it is not counted twice. */
const COUNTED_SECONDS = 3600;

/** An image at a provider. */
interface Target {
  readonly image: string;
  readonly provider: string;
}

/** The reason for which a launch test ends early. */
class PointlessTestError extends Error {}

interface Office {
  readonly election: Election;
  /** Aborts when this launcher loses the election; undefined while it is not elected. */
  term: AbortSignal | undefined;
}

export class ImageReviews implements Controller {
  private config: NodepoolConfig | undefined;
  private readonly offices = new Map<string, Office>();
  private readonly ending = new Set<Promise<void>>();
  /** One object per target, because the queue compares its keys by identity. */
  private readonly targets = new Map<string, Target>();
  private readonly queue: WorkQueue<Target>;
  /** Observations that are not counted yet, by the path of the upload. */
  private readonly pending = new Map<string, Map<string, Observation>>();
  /** Launch tests in progress; each ends once it has become pointless. */
  private readonly tests = new Map<Target, { readonly upload: ImageUpload; readonly end: (reason: Error) => void }>();
  /** Failed launch tests by the path of the upload. */
  private readonly failures = new Map<string, number>();
  private readonly locks: LockRecipe;
  private readonly unsubscribe: (() => void)[];

  constructor(
    private readonly context: LauncherContext,
    /** Returns true if this launcher launches nodes of the provider. */
    private readonly launches: (provider: string) => boolean,
  ) {
    const { store, random, clock, hostname, log } = context;
    this.locks = lockRecipe(store.zooKeeper, {
      ...{ random, clock, identifier: hostname },
      onWarning: (error) => log.warn('An election could not be left yet; retrying', { error }),
    });
    this.queue = new WorkQueue({
      ...context,
      name: ({ image, provider }) => `review image ${image} at provider ${provider}`,
      about: (target) => ({ ...target }),
      reconcile: (target, run) => this.reconcile(target, run),
    });
    this.unsubscribe = [
      store.images.onChange((image) => this.imageChanged(image)),
      store.nodes.onChange(({ after }) => {
        if (after?.node.trial !== undefined) this.nodeChanged(after);
      }),
      store.onComplete((complete) => {
        if (complete) this.addAll();
      }),
    ];
  }

  apply(config: NodepoolConfig): void {
    this.config = config;
    this.endPointlessTests();
    this.addAll();
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.abort(new Error('the launcher is stopping'));
    for (const provider of [...this.offices.keys()]) this.leave(provider);
    await Promise.all(this.ending);
  }

  private addAll(): void {
    for (const provider of [...this.offices.keys()]) if (!this.isWanted(provider)) this.leave(provider);
    for (const [provider, { diskImages }] of this.config?.providers ?? []) {
      if (!this.isWanted(provider)) continue;
      this.enter(provider);
      for (const image of diskImages.keys()) this.queue.add(this.targetOf(image, provider));
    }
  }

  /** Ends the tests of uploads that an operator has judged, that are deleted, or that need no test any more. */
  private endPointlessTests(): void {
    for (const [target, { upload, end }] of this.tests) {
      const stage = this.context.store.images.upload(upload)?.review?.stage;
      if (stage === 'uploaded' && this.testsOf(target).launchTest !== undefined) continue;
      end(new PointlessTestError('the launch test of an image has become pointless'));
    }
  }

  private imageChanged(image: string): void {
    this.endPointlessTests();
    for (const [provider, { diskImages }] of this.config?.providers ?? []) {
      if (!diskImages.has(image)) continue;
      if (!this.offices.has(provider) && this.isWanted(provider)) this.enter(provider);
      if (this.offices.has(provider)) this.queue.add(this.targetOf(image, provider));
    }
  }

  /** Returns true if uploads to the provider are tested, or were when they began their reviews. */
  private isWanted(provider: string): boolean {
    const config = this.config?.providers.get(provider);
    if (config === undefined || !this.launches(provider)) return false;
    return [...config.diskImages.values()].some(
      ({ name, tests }) =>
        (tests !== undefined && hasImageTests(tests)) || this.uploadsOf(name, provider).some(isUnderReview),
    );
  }

  private enter(provider: string): void {
    if (this.offices.has(provider)) return;
    const { store, clock, hostname, log } = this.context;
    const office: Office = {
      election: election(store.zooKeeper, `${ELECTIONS_ROOT}/image-review/${provider}`, {
        ...{ locks: this.locks, clock, identifier: hostname },
        onError: (error) =>
          log.warn('The election of the launcher that reviews images failed; retrying', { provider, error }),
      }),
      term: undefined,
    };
    this.offices.set(provider, office);
    office.election.run(async (term) => {
      // Once this is answered, the cache has every write of the previously elected launcher.
      await store.images.syncCache({ signal: term });
      if (term.aborted) return;
      office.term = term;
      term.addEventListener('abort', () => (office.term = undefined), { once: true });
      for (const entry of store.nodes.ofProvider(provider)) this.nodeChanged(entry);
      this.addAll();
    });
  }

  private leave(provider: string): void {
    const office = this.offices.get(provider);
    if (office === undefined) return;
    this.offices.delete(provider);
    office.term = undefined;
    const ended = office.election.close().finally(() => this.ending.delete(ended));
    this.ending.add(ended);
  }

  private nodeChanged({ node }: NodeEntry): void {
    const { trial, provider } = node;
    if (trial === undefined || trial === null || provider === null) return;
    if (this.offices.get(provider)?.term === undefined) return;
    const image = this.imageOf(trial.upload, provider);
    if (image === undefined) return;
    const pending = this.pending.get(trial.upload) ?? new Map<string, Observation>();
    this.pending.set(trial.upload, pending);
    for (const observation of observationsOf(node)) pending.set(keyOf(observation), observation);
    if (pending.size > 0) this.queue.add(this.targetOf(image, provider), BATCH_MS);
  }

  private imageOf(upload: string, provider: string): string | undefined {
    const images = this.config?.providers.get(provider)?.diskImages.keys() ?? [];
    return [...images].find((image) => upload.startsWith(`/nodepool/images/${image}/builds/`));
  }

  private uploadsOf(image: string, provider: string): readonly ImageUpload[] {
    return [...this.context.store.images.uploads({ image, provider })];
  }

  private testsOf({ image, provider }: Target): ImageTests {
    return this.config?.providers.get(provider)?.diskImages.get(image)?.tests ?? NO_IMAGE_TESTS;
  }

  private async reconcile(target: Target, run: Reconciliation): Promise<Reconciled> {
    const term = this.offices.get(target.provider)?.term;
    if (term === undefined || !this.context.store.complete) return 'done';
    const linked = linkSignals(run.signal, term);
    try {
      const counted = await this.count(target, linked.signal);
      if (!counted) return { requeueAfterMs: CONFLICT_MS };
      const step = planReview(this.uploadsOf(target.image, target.provider), this.testsOf(target));
      return step === undefined ? 'done' : await this.take(step, target, linked.signal);
    } catch (error) {
      // Another launcher is elected, which continues.
      if (term.aborted && !run.signal.aborted) return 'done';
      throw error;
    } finally {
      linked.unlink();
    }
  }

  /** Writes pending observations. Resolves with false after a conflict. */
  private async count({ image, provider }: Target, signal: AbortSignal): Promise<boolean> {
    for (const upload of this.uploadsOf(image, provider)) {
      const path = pathOf(upload);
      const pending = this.pending.get(path);
      if (pending === undefined) continue;
      const { review } = upload;
      if (review?.stage !== 'canary' || review.trial === undefined) {
        this.pending.delete(path);
        continue;
      }
      const now = unixSeconds(this.context);
      const observations = [...pending.values()];
      let trial = review.trial;
      for (const observation of observations) trial = observe(trial, observation, now);
      if (trial !== review.trial) {
        const known = { ...trial, counted: this.withoutOld(trial.counted, now) };
        if (!(await writeReview(this.context, upload, { ...review, trial: known }, signal))) return false;
      }
      for (const observation of observations) {
        if (pending.get(keyOf(observation)) === observation) pending.delete(keyOf(observation));
      }
      if (pending.size === 0) this.pending.delete(path);
    }
    return true;
  }

  private withoutOld(counted: Readonly<Record<string, number>>, now: number): Readonly<Record<string, number>> {
    const { nodes } = this.context.store;
    const isKept = ([key, since]: readonly [string, number]): boolean =>
      now - since < COUNTED_SECONDS || nodes.get(key.slice(0, key.indexOf('/'))) !== undefined;
    return Object.fromEntries(Object.entries(counted).filter(isKept));
  }

  private async take(step: ReviewStep, target: Target, signal: AbortSignal): Promise<Reconciled> {
    const { context } = this;
    const { upload } = step;
    const now = unixSeconds(context);
    let done: boolean;
    switch (step.kind) {
      case 'adopt':
        done = await writeReview(context, upload, trustedReview(upload.state_time), signal);
        break;
      case 'enter': {
        const by = `nodepool-launcher ${context.hostname}`;
        done = await writeReview(context, upload, newReview(now, by, 'a builder without reviews uploaded it'), signal);
        break;
      }
      case 'test':
        return await this.test(upload, target, signal);
      case 'trial':
        done = await advance(context, upload, 'trial', 'a share of the launches uses it', signal, {
          trial: newTrial(now),
        });
        break;
      case 'promote':
      case 'reject':
        done = await advance(context, upload, step.kind, step.reason, signal);
    }
    return { requeueAfterMs: done ? 0 : CONFLICT_MS };
  }

  private async test(upload: ImageUpload, target: Target, signal: AbortSignal): Promise<Reconciled> {
    const { context } = this;
    const { image, build, id, provider } = upload;
    const log = context.log.with({ image, provider, build_id: build, upload_id: id });
    const test = this.testsOf(target).launchTest;
    const config = this.config?.providers.get(provider);
    const label = config && labelToTest(config, image);
    if (test === undefined) return { requeueAfterMs: 0 };
    if (label === undefined) {
      // The next configuration reconciles the image again.
      log.warn('An upload waits for its launch test: no label of its provider uses the image');
      return 'done';
    }
    const result = await this.runTest(upload, target, label, test, signal, log);
    if (result === undefined) return { requeueAfterMs: 0 };
    const current = context.store.images.upload(upload) ?? upload;
    if (result.kind === 'passed') {
      this.failures.delete(pathOf(upload));
      const done = await advance(context, current, 'tested', 'a node launched from it has passed the test', signal);
      return { requeueAfterMs: done ? 0 : CONFLICT_MS };
    }
    log.warn('A launch test did not pass', { result: result.kind, reason: result.reason });
    if (result.kind === 'inconclusive') return { pauseMs: RETRY_MS };
    const failures = (this.failures.get(pathOf(upload)) ?? 0) + 1;
    this.failures.set(pathOf(upload), failures);
    // A single failure may be the fault of one host.
    if (failures < MAX_FAILURES) return { pauseMs: RETRY_MS };
    this.failures.delete(pathOf(upload));
    const done = await advance(context, current, 'reject', `launch test: ${result.reason}`, signal);
    return { requeueAfterMs: done ? 0 : CONFLICT_MS };
  }

  /** Resolves with undefined if the test has become pointless. */
  private async runTest(
    upload: ImageUpload,
    target: Target,
    label: string,
    test: LaunchTestConfig,
    signal: AbortSignal,
    log: Logger,
  ): Promise<LaunchTestResult | undefined> {
    const linked = linkSignals(signal);
    this.tests.set(target, { upload, end: (reason) => linked.abort(reason) });
    try {
      return await testLaunch(this.context, upload, label, test, linked.signal, log);
    } catch (error) {
      if (linked.signal.reason instanceof PointlessTestError) return undefined;
      throw error;
    } finally {
      this.tests.delete(target);
      linked.unlink();
    }
  }

  private targetOf(image: string, provider: string): Target {
    const key = `${image}/${provider}`;
    let target = this.targets.get(key);
    if (target === undefined) this.targets.set(key, (target = { image, provider }));
    return target;
  }
}

function isUnderReview({ review }: ImageUpload): boolean {
  return review?.stage === 'uploaded' || review?.stage === 'launch-tested' || review?.stage === 'canary';
}
