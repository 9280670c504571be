/** Checks every event against the rules, and stops at the first violation. */

import { isJsonObject, type Clock, type JsonObject } from '@nodepool/core';
import type { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { CloudImage, ImageCloud } from '../support/image-cloud.js';
import type { Machine } from '../support/world.js';
import { JUDGED } from './judge.js';

/** A provider whose uploads hang for the whole run. */
export const BAD_PROVIDER = 'bad';

/** The world that the checker observes. */
export interface CheckedWorld {
  readonly clock: Clock;
  readonly server: SimulatedZooKeeperServer;
  readonly cloud: ImageCloud;
  readonly machines: readonly Machine[];
  /** True if images have tests. */
  readonly withTests: boolean;
  /** Returns true if every builder's configuration has listed the image at the provider for some time. */
  isListedEverywhere(provider: string, image: string): boolean;
}

/** A violated rule. */
export interface Violation {
  /** Number in the design, `S` for safety, `L` for liveness; `X`: a failure that no rule covers. */
  readonly rule: string;
  /** Milliseconds since the start. */
  readonly at: number;
  readonly what: string;
}

interface Upload {
  readonly path: string;
  readonly image: string;
  readonly build: string;
  readonly provider: string;
  readonly id: string;
  readonly data: JsonObject;
}

interface Build {
  readonly image: string;
  readonly id: string;
  readonly data: JsonObject;
}

const UPLOAD = /^\/nodepool\/images\/([^/]+)\/builds\/([^/]+)\/providers\/([^/]+)\/images\/([0-9]{10})$/;
const BUILD = /^\/nodepool\/images\/([^/]+)\/builds\/([0-9a-f]{32})$/;
const REMEMBERED_STEPS = 80;

export class Checker {
  violation: Violation | undefined;
  readonly lastSteps: string[] = [];
  count = 0;
  /** Objects that an operator has deleted: uploads by path, builds by id. */
  readonly deletedByOperator = new Set<string>();
  private readonly uploads = new Map<string, Upload>();
  private closed = false;

  constructor(
    private readonly world: CheckedWorld,
    private readonly options: {
      readonly only: string | undefined;
      readonly onStep: ((step: string) => void) | undefined;
    },
  ) {
    world.server.onCommit((changes) => {
      for (const { path } of changes) this.changed(path);
    });
    world.cloud.observer = { deleting: (image) => this.deleting(image) };
    for (const { name, disk } of world.machines) {
      disk.onRemove = ({ path }) => {
        if (world.cloud.isSending(path)) this.report('S10', `${name} removes ${path}, which is being uploaded`);
      };
    }
  }

  close(): void {
    this.closed = true;
  }

  step(what: string): void {
    if (this.closed) return;
    const line = `${String(this.world.clock.monotonic()).padStart(9)} ${what}`;
    this.count += 1;
    this.lastSteps.push(line);
    if (this.lastSteps.length > REMEMBERED_STEPS) this.lastSteps.shift();
    this.options.onStep?.(line);
  }

  report(rule: string, what: string): void {
    const { only = rule } = this.options;
    if (this.closed || only !== rule) return;
    this.violation ??= { rule, at: this.world.clock.monotonic(), what };
  }

  /** Returns the violations of liveness: the differences from the required final state once faults have ended. */
  unfinished(): readonly string[] {
    const found: string[] = [];
    const builds = this.builds();
    const uploads = [...this.uploads.values()];
    const uploaded = new Set(uploads.map(({ build }) => build));
    for (const { image, id, data } of builds) {
      // The record of a build stays while uploads are in service, or exist at the bad provider.
      const stays = data['state'] === 'ready' || (data['state'] === 'deleting' && uploaded.has(id));
      if (!stays) found.push(`build ${id} of ${image} is ${stateOf(data)}`);
    }
    for (const { path, provider, data } of uploads) {
      if (provider !== BAD_PROVIDER && data['state'] !== 'ready') found.push(`${path} is ${stateOf(data)}`);
      const { external_id: id } = data;
      const isGone = 'listed' in data && typeof id === 'string' && !this.world.cloud.images.has(id);
      if (isGone) found.push(`the image of ${path} is gone`);
    }
    for (const [image, providers] of [
      ['debian', ['one', 'two']],
      ['fedora', ['one', 'two']],
    ] as const) {
      const ready = builds.filter((build) => build.image === image && build.data['state'] === 'ready');
      const newest = ready.toSorted((a, b) => timeOf(b) - timeOf(a))[0];
      if (newest === undefined) found.push(`there is no build of ${image}`);
      for (const provider of providers) {
        const own = uploads.filter((upload) => upload.image === image && upload.provider === provider);
        // The uploads in service, the candidate, and one that is rejected.
        const limit = this.isJudged({ image, provider }) ? 5 : 2;
        if (own.length > limit) found.push(`${own.length} uploads of ${image} to ${provider}`);
        const isUploaded = own.some(({ build }) => build === newest?.id);
        if (!isUploaded && this.hasFile(newest?.id, provider)) found.push(`${provider} lacks the newest ${image}`);
      }
    }
    return [...found, ...this.leftovers(builds, uploads)];
  }

  /** Returns true if a file of the build can be uploaded to the provider: not with `delete-after-upload`. */
  private hasFile(build: string | undefined, provider: string): boolean {
    const format = { one: 'qcow2', two: 'raw' }[provider];
    return this.world.machines.some(({ disk }) =>
      [...disk.files.values()].some((file) => file.id === build && file.format === format),
    );
  }

  private leftovers(builds: readonly Build[], uploads: readonly Upload[]): readonly string[] {
    const found: string[] = [];
    const known = new Set(uploads.map(({ data }) => data['external_id']));
    for (const image of this.world.cloud.images.values()) {
      if (image.provider !== BAD_PROVIDER && !known.has(image.id)) found.push(`image ${image.id} has no record`);
    }
    for (const { name, disk, builderId } of this.world.machines) {
      for (const { path, image, id } of disk.files.values()) {
        const own = builds.some((build) => build.id === id && build.data['builder_id'] === builderId);
        if (!own) found.push(`${path} of ${image} on ${name} is of no build`);
      }
    }
    return found;
  }

  private changed(path: string): void {
    const match = UPLOAD.exec(path);
    if (match === null) return;
    const [, image = '', build = '', provider = '', id = ''] = match;
    const before = this.uploads.get(path);
    const data = this.read(path);
    if (data === undefined) {
      this.uploads.delete(path);
      if (before !== undefined) this.step(`${path} is removed`);
      return;
    }
    const upload: Upload = { path, image, build, provider, id, data };
    this.uploads.set(path, upload);
    if (before?.data['state'] === data['state']) return;
    if (before === undefined) this.begins(upload);
    this.step(`${path} is ${stateOf(data)}`);
    if (before?.data['state'] === 'ready' && data['state'] === 'deleting') this.leavesService(before);
  }

  /**
   * Checks a deletion: the newest ready upload stays unless an operator deletes it or the provider no longer lists the
   * image.
   */
  private leavesService(upload: Upload): void {
    if (this.isJudged(upload)) {
      this.judgedLeavesService(upload);
      return;
    }
    if (this.isUnwanted(upload) || !this.world.isListedEverywhere(upload.provider, upload.image)) return;
    const newer = [...this.uploads.values()].some(
      (other) =>
        other.image === upload.image &&
        other.provider === upload.provider &&
        timeOf(other) > timeOf(upload) &&
        (other.data['state'] === 'ready' || this.isUnwanted(other)),
    );
    if (!newer) this.report('S10', `${upload.path}, the newest ready upload, is taken out of service`);
  }

  /** Checks a new upload of an image with tests. */
  private begins({ path, image, build, provider }: Upload): void {
    if (!this.world.withTests || image !== JUDGED.image) return;
    const record = this.builds().find(({ id }) => id === build);
    if (record?.data['boot_tested'] !== true) {
      this.report('S21', `${path} begins, but its build has not passed a boot test`);
    }
    const rejected = [...this.uploads.values()].find(
      (other) => other.build === build && other.provider === provider && isBarred(other),
    );
    if (rejected !== undefined)
      this.report('S22', `${path} begins, but ${rejected.path} of the same build is rejected`);
  }

  /** Checks a deletion: the upload that serves requests stays unless an operator deletes it. */
  private judgedLeavesService(upload: Upload): void {
    if (this.isUnwanted(upload) || !this.world.isListedEverywhere(upload.provider, upload.image)) return;
    const own = [...this.uploads.values()]
      .map((other) => (other.path === upload.path ? upload : other))
      .filter((other) => other.image === upload.image && other.provider === upload.provider)
      .filter(({ data }) => data['state'] === 'ready' && data['listed'] !== false);
    const pinned = own.filter((other) => !isBarred(other) && isJsonObject(reviewOf(other)?.['pinned']));
    const promoted = own.filter((other) => reviewOf(other)?.['stage'] === 'promoted');
    const newest = promoted.toSorted((a, b) => promotedAt(b) - promotedAt(a))[0];
    if (pinned.length > 0 ? pinned.some(({ path }) => path === upload.path) : newest?.path === upload.path) {
      this.report('S23', `${upload.path}, which serves requests, is taken out of service`);
    }
  }

  private isJudged({ image, provider }: Pick<Upload, 'image' | 'provider'>): boolean {
    return this.world.withTests && image === JUDGED.image && provider === JUDGED.provider;
  }

  private isUnwanted({ path, build }: Upload): boolean {
    return this.deletedByOperator.has(path) || this.deletedByOperator.has(build);
  }

  private deleting(image: CloudImage): void {
    this.step(`${image.id} of ${image.provider} is deleted`);
    for (const upload of this.uploads.values()) {
      const { data, path } = upload;
      if (data['external_id'] === image.id && data['state'] === 'ready') {
        this.report('S10', `${image.id} is deleted while ${path} is ready`);
      }
    }
  }

  private builds(): readonly Build[] {
    return [...this.world.server.dump().keys()].flatMap((path) => {
      const [, image, id] = BUILD.exec(path) ?? [];
      const data = image === undefined ? undefined : this.read(path);
      return image === undefined || id === undefined || data === undefined ? [] : [{ image, id, data }];
    });
  }

  /** Returns the record; undefined if there is none. */
  private read(path: string): JsonObject | undefined {
    const znode = this.world.server.dump().get(path);
    if (znode === undefined || znode.data.length === 0) return undefined;
    const value: unknown = JSON.parse(new TextDecoder().decode(znode.data));
    return isJsonObject(value) ? value : undefined;
  }
}

function reviewOf({ data }: Upload): JsonObject | undefined {
  const { review } = data;
  return isJsonObject(review) ? review : undefined;
}

function isBarred(upload: Upload): boolean {
  const stage = reviewOf(upload)?.['stage'];
  return stage === 'rejected' || stage === 'revoked';
}

function promotedAt(upload: Upload): number {
  return Number(reviewOf(upload)?.['promoted']);
}

function stateOf(data: JsonObject): string {
  const { state } = data;
  return typeof state === 'string' ? state : 'in no state';
}

function timeOf({ data }: { readonly data: JsonObject }): number {
  return Number(data['state_time']);
}
