/** The labels of a pool: what resources their nodes need, their images and offers, and obstacles to serving them. */

import type { Call, LabelConfig, Logger, NodeRequest, PoolConfig, Provider } from '@nodepool/core';
import {
  backOffMs,
  DriverError,
  hasImageTests,
  QuotaInformation,
  sleep,
  driverCall,
  uploadToTest,
} from '@nodepool/core';
import { machineTypesOf, PoolOffers } from '../capacity/pool-offers.js';
import type { LauncherContext } from '../context.js';
import { isBarredUpload, standingOf, type ChoicePolicy, type ImageChoice, type ImageStore } from '@nodepool/store';
import { LabelNeeds } from '../quota/label-needs.js';
import type { TurnLimiter } from '../quota/turn-limiter.js';

const ZONES_TIMEOUT_MS = 60_000;
/** Limits of the delay before the zones are requested again after a failure, milliseconds. */
const ZONES_BACK_OFF = { firstMs: 10_000, longestMs: 600_000 } as const;

/** The part of a request that the choice of an upload depends on. */
type ImageRequest = Pick<NodeRequest, 'id' | 'requestor' | 'requestor_data'>;

/** Returns how the uploads of an image to the provider are chosen. */
export function choicePolicy({ config }: Pick<Provider, 'config'>, image: string): ChoicePolicy {
  const tests = config.diskImages.get(image)?.tests;
  if (tests === undefined) return UNTESTED;
  return { isTested: hasImageTests(tests), share: tests.canary?.share ?? 0 };
}

const UNTESTED: ChoicePolicy = { isTested: false, share: 0 };

export class PoolLabels {
  readonly offers: PoolOffers;
  private readonly needs: LabelNeeds;
  /** The last known obstacle of each label with a disk image. */
  private readonly obstacles = new Map<string, string>();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: Provider,
    private readonly pool: PoolConfig,
    private readonly signal: AbortSignal,
    private readonly log: Logger,
    /** Called when a label can be served that could not be before, and after every change of the offers. */
    private readonly onChange: () => void,
  ) {
    this.needs = new LabelNeeds(context, provider, pool, signal, onChange);
    const isKnown = (label: string, machineType: string | undefined): boolean => this.needs.isKnown(label, machineType);
    this.offers = new PoolOffers(context, provider.config.name, pool, isKnown, signal, onChange);
  }

  /** Loads the facts that decisions depend on from the cloud. `limiter` limits the rate of questions about labels. */
  async load(limiter: TurnLimiter): Promise<void> {
    await this.needs.load(limiter);
    await this.loadZones();
  }

  label(name: string): LabelConfig | undefined {
    return this.pool.labels.get(name);
  }

  /** Returns the resources that a node of the label needs with this machine type. */
  need(label: string, machineType: string | undefined): QuotaInformation {
    return this.needs.need(label, machineType);
  }

  /**
   * Returns the upload from which nodes of a label with a disk image are launched for the request, and its part in a
   * trial. Without a request, returns the upload that needs no trial.
   */
  choose({ image }: LabelConfig, request: ImageRequest | undefined): ImageChoice | undefined {
    if (image.kind !== 'diskimage') return undefined;
    const choosing = request && { id: request.id, exactly: uploadToTest(request) };
    const { name } = this.provider.config;
    return this.context.store.images.choose(image.name, name, choicePolicy(this.provider, image.name), choosing);
  }

  /** Returns true if the label has a disk image without an upload to the provider that may serve the request. */
  lacksUpload(name: string, request?: ImageRequest): boolean {
    const label = this.label(name);
    return label?.image.kind === 'diskimage' && this.choose(label, request) === undefined;
  }

  /** Returns true if the change of a disk image changes the obstacle of a label. */
  imageChanged(image: string): boolean {
    let changed = false;
    for (const { name, image: used } of this.pool.labels.values()) {
      if (used.kind !== 'diskimage' || used.name !== image) continue;
      const now = this.upcoming([name]) ?? this.obstacle([name]) ?? '';
      changed ||= this.obstacles.get(name) !== now;
      this.obstacles.set(name, now);
    }
    return changed;
  }

  /** Returns the upload or the cloud's answer that one of the labels waits for, in words; undefined if none waits. */
  upcoming(names: readonly string[], request?: ImageRequest): string | undefined {
    for (const name of names) {
      const wait = this.needs.waitsFor(name);
      if (wait !== undefined) return wait;
      const label = this.label(name);
      if (label?.image.kind !== 'diskimage' || !this.lacksUpload(name, request)) continue;
      if (request !== undefined && uploadToTest(request) !== undefined) continue;
      const query = { image: label.image.name, provider: this.provider.config.name };
      const { isTested } = choicePolicy(this.provider, label.image.name);
      const { candidate } = standingOf(this.context.store.images.uploads(query), isTested);
      if (candidate !== undefined)
        return `label ${name} waits for the test of build ${candidate.build} of disk image ${label.image.name}`;
      for (const { state, build } of this.context.store.images.uploads(query)) {
        if (state !== 'uploading') continue;
        return `label ${name} waits for the upload of build ${build} of disk image ${label.image.name}`;
      }
    }
    return undefined;
  }

  /** Returns the minimum that nodes of these labels need with any of their machine types. */
  leastNeed(names: readonly string[]): QuotaInformation {
    return names.reduce((sum, name) => sum.add(this.leastNeedOf(name)), QuotaInformation.NOTHING);
  }

  /** Returns the reason why one of the labels cannot be served at the moment, or undefined. */
  obstacle(names: readonly string[], request?: ImageRequest): string | undefined {
    for (const name of names) {
      const label = this.label(name);
      if (label?.image.kind === 'diskimage' && this.choose(label, request) === undefined) {
        const wait = imageWait(this.context.store.images, label.image.name, this.provider.config.name);
        return `disk image ${label.image.name} of label ${name} has no upload to this provider that is ready: ${wait}`;
      }
      const readiness = this.needs.readiness(name);
      if (!readiness.ready) return `label ${name} cannot be served: ${readiness.reason}`;
    }
    return this.offers.rejection(names);
  }

  private leastNeedOf(name: string): QuotaInformation {
    const types = machineTypesOf(this.label(name));
    const first = this.need(name, types[0]);
    if (types.length === 1) return first;
    const others = types.slice(1).map((machineType) => this.need(name, machineType));
    const least = Object.fromEntries(
      first.entries().map(([resource, amount]) => {
        return [resource, Math.min(amount, ...others.map((other) => other.get(resource)))];
      }),
    );
    return QuotaInformation.use(least);
  }

  /** Loads the zones that launches choose from. If that fails, the cloud chooses until a later attempt succeeds. */
  private async loadZones(failures = 0): Promise<void> {
    const { provider, pool, signal, log } = this;
    const { clock, random, tasks } = this.context;
    const getAvailabilityZones = provider.getAvailabilityZones?.bind(provider);
    if (pool.availabilityZones.length > 0 || getAvailabilityZones === undefined) {
      this.offers.setZones(pool.availabilityZones);
      return;
    }
    const call: Call = { signal, deadline: clock.monotonic() + ZONES_TIMEOUT_MS, log };
    try {
      const zones: unknown = await driverCall(clock, 'asking for availability zones', call, (each) =>
        getAvailabilityZones(pool.name, each),
      );
      this.offers.setZones(checkZones(zones));
      if (failures > 0) this.onChange();
    } catch (error) {
      if (signal.aborted) return;
      const delayMs = backOffMs(failures + 1, error, random, ZONES_BACK_OFF);
      log.warn('The cloud does not report its availability zones; it chooses them itself', {
        error,
        retry_in_ms: Math.round(delayMs),
      });
      tasks.run(`ask again for the availability zones of pool ${pool.name}`, () =>
        this.loadZonesLater(failures + 1, delayMs),
      );
    }
  }

  private async loadZonesLater(failures: number, delayMs: number): Promise<void> {
    try {
      await sleep(this.context.clock, delayMs, this.signal);
    } catch {
      // The sleep rejects only if the signal aborts because the pool is stopped.
      return;
    }
    await this.loadZones(failures);
  }
}

function checkZones(zones: unknown): readonly string[] {
  if (Array.isArray(zones) && zones.every((zone) => typeof zone === 'string')) return zones;
  const message = "the driver's answer is no list of availability zones; this is a defect of the driver";
  throw new DriverError('unexpected', message);
}

/** Returns what a disk image without a ready upload waits for, in words that change only with the image's state. */
export function imageWait(images: ImageStore, image: string, provider: string): string {
  const builds = images.builds(image);
  const ready = builds.findLast(({ state }) => state === 'ready');
  if (ready !== undefined) {
    const place = { image, build: ready.id, provider };
    const barred = [...images.uploads(place)].find(isBarredUpload);
    if (barred !== undefined) return `build ${ready.id} is ${barred.review?.stage ?? ''}, and another build is needed`;
    return images.isUploading(place)
      ? `build ${ready.id} is being uploaded`
      : `build ${ready.id} waits for ${ready.builder ?? 'its builder'} to upload it`;
  }
  const building = builds.findLast(({ state }) => state === 'building');
  if (building !== undefined && images.isBuilding(image))
    return `it is being built by ${building.builder ?? 'a builder'}`;
  if (images.paused(image)) return `it was never built and is paused; \`nodepool image-unpause ${image}\` ends that`;
  if (builds.some(({ state }) => state === 'failed')) return 'its last build failed; the log of the builder says why';
  return images.buildRequested(image) ? 'its build is asked for' : 'no builder has built it';
}
