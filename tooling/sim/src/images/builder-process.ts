/** A builder process with all parts of a real one except for processes and files, which can be killed at any moment. */

import {
  NotFoundError,
  sleep,
  TaskSupervisor,
  type Driver,
  type ImageManager,
  type ListedImage,
  type Logger,
  type RandomSource,
} from '@nodepool/core';
import { Builder } from '@nodepool/builder';
import { CloudError, type ExampleCloud } from '@nodepool/driver-example';
import { overlay, type SimulatedProcess } from '@nodepool/simulated-process';
import { openStore } from '@nodepool/store';
import type { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { between } from '../chance.js';
import type { Checker } from '../checker.js';
import { never } from '../cloud-view.js';
import type { DriverFaults } from '../faulty-driver.js';
import { mortalClient } from '../mortal-client.js';
import type { Mutation } from '../mutation.js';
import { changingProviders } from '../mutators.js';
import { nodepoolConfig, type Site } from '../site.js';
import { NO_SOURCES, scriptedBootTester, scriptedCreator, type BuiltImages, type MemoryDisk } from './built-images.js';

const SESSION_TIMEOUT_MS = 9000;
/** Duration of an upload (ms). */
const UPLOAD_MS = { least: 1000, greatest: 20_000 } as const;

export interface BuilderEnvironment {
  readonly server: SimulatedZooKeeperServer;
  readonly cloud: ExampleCloud;
  readonly images: BuiltImages;
  readonly driverFaults: DriverFaults;
  readonly checker: Checker;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly mutation: Mutation | undefined;
  /** Called when it dies. */
  readonly onDeath: () => void;
}

/** A machine, whose disk survives the death of its builder. */
export interface BuilderMachine {
  readonly name: string;
  readonly disk: MemoryDisk;
}

export class BuilderProcess {
  readonly zooKeeper: ZooKeeper;
  private stepsToLive: number | undefined;

  constructor(
    readonly process: SimulatedProcess,
    readonly machine: BuilderMachine,
    private readonly environment: BuilderEnvironment,
    site: Site,
  ) {
    const { server, checker, random, log, images, mutation, cloud, driverFaults } = environment;
    const { clock, name } = process;
    this.zooKeeper = server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS, clock, random });
    const client = mortalClient(this.zooKeeper, {
      isDead: () => process.dead,
      atStep: () => this.atStep(),
      writing: (ops) => ops,
    });
    const store = openStore(client, { clock, random, identifier: name, log });
    const tasks = new TaskSupervisor(clock, (task, error) =>
      checker.step(`${name} failed to ${task}: ${String(error)}`),
    );
    const builder = new Builder({
      store: mutation?.builderStore?.(store) ?? store,
      ...{ clock, random, log, tasks },
      hostname: name,
      fqdn: `${name}.example.org`,
      version: '0.0.0',
      builderId: `id-of-${name}`,
      files: machine.disk,
      creator: scriptedCreator(images, machine.disk, clock, random),
      bootTester: scriptedBootTester(images, clock),
      sources: NO_SOURCES,
      hook: () => Promise.resolve(),
    });
    store.start();
    const withImages = (driver: Driver): Driver =>
      changingProviders((provider) => overlay(provider, { images: this.imageManager() }))(driver);
    builder.start(nodepoolConfig(site, cloud, driverFaults, withImages));
  }

  get name(): string {
    return this.process.name;
  }

  /** Kills it without closing its session, which lives on until it expires. */
  kill(): void {
    this.process.kill();
    this.environment.server.partition(this.zooKeeper, 'cut');
    this.environment.onDeath();
  }

  /** Kills it right before or after its `steps`th change from now on, in ZooKeeper or in the cloud. */
  killAfter(steps: number): void {
    this.stepsToLive = steps;
  }

  private atStep(): void {
    if (this.stepsToLive === undefined || this.process.dead) return;
    this.stepsToLive -= 1;
    if (this.stepsToLive > 0) return;
    this.environment.checker.step(`${this.name} dies between two steps`);
    this.kill();
  }

  /** Returns an image manager whose uploads need no file. */
  private imageManager(): ImageManager {
    const { cloud, images, random, checker } = this.environment;
    const { process } = this;
    const isDead = (): boolean => process.dead;
    const call = async <T>(ask: () => Promise<T> | T): Promise<T> => {
      this.atStep();
      if (isDead()) return never();
      const answer = await process.receive(Promise.resolve().then(ask));
      this.atStep();
      return isDead() ? never() : answer;
    };
    return {
      uploadImage: async (upload) => {
        const { externalName: name, format, tags, metadata, signal } = upload;
        const spec = { name, format, size: 1, md5: null, sha256: null, tags, properties: metadata };
        const { id } = await call(() => cloud.createImage(spec));
        images.created(id, tags.nodepool_build_id);
        await sleep(process.clock, between(random, UPLOAD_MS.least, UPLOAD_MS.greatest), signal);
        await call(() => cloud.putImageData(id, oneByte()));
        upload.progress(1, 1);
        return id;
      },
      deleteImage: async (externalId) => {
        if (typeof externalId !== 'string') throw new NotFoundError('no image of this cloud has such an id');
        await call(async () => {
          checker.deletingImage(process, externalId);
          await deleteImage(cloud, externalId);
        });
      },
      listImages: async () => {
        const listed: ListedImage[] = [];
        for (let marker: string | null = null; ;) {
          const from = marker;
          const page: Awaited<ReturnType<ExampleCloud['listImages']>> = await call(() => cloud.listImages(from));
          for (const { id, name, tags, state } of page.items)
            listed.push({ externalId: id, name, tags, ready: state === 'ready' });
          marker = page.next;
          if (marker === null) return listed;
        }
      },
    };
  }
}

/** Deletes an image; a missing one is deleted already. */
async function deleteImage(cloud: ExampleCloud, id: string): Promise<void> {
  try {
    await cloud.deleteImage(id);
  } catch (error) {
    if (!(error instanceof CloudError) || error.code !== 'not-found') throw error;
  }
}

async function* oneByte(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1);
  await Promise.resolve();
}
