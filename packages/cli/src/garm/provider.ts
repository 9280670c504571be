/** The operations of GARM's external provider. The gateway's leases are their only state. */

import { reasonOf, printable, type Clock, type RandomSource } from '@nodepool/core';
import { posix, SshClient } from '@nodepool/daemon/ssh';
import { LeaseRequestError, type LeaseClient, type LeaseDocument } from '@nodepool/requestor/http';
import { CommandError } from '../command-context.js';
import type { Environment } from '../gitlab/job.js';
import { createLease, isOpen, leasesNamed, releaseAll, withReadyNode, type LeasingIo } from '../leasing/one-node.js';
import type { Streams } from '../process-io.js';
import { readBootstrap, type Bootstrap } from './bootstrap.js';
import { DUPLICATE, GarmError, NOT_FOUND, type GarmCall } from './call.js';
import { nodeScript, REMOTE_OCCUPIED, REMOTE_TRUNCATED, startCommand } from './installation.js';
import {
  documentOf,
  instanceOf,
  leaseData,
  leaseNameOf,
  type ProviderInstance,
  type StoredInstance,
} from './instance.js';
import { readExtraSpecs, type GarmSettings } from './settings.js';

/** Lifetime (s) of a lease until its runner is being installed, so that a killed creation leaves no node for long. */
const STARTUP_LIFETIME_S = 600;
const LEASE_ID = /^[0-9a-f]{32}$/;

export interface ProviderIo {
  readonly env: Environment;
  readonly streams: Streams;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly interrupted: AbortSignal;
}

/** A lease of this program, and its instance. */
interface OwnLease {
  readonly lease: LeaseDocument;
  readonly instance: StoredInstance;
}

export class GarmProvider {
  private readonly leasing: LeasingIo;

  constructor(
    private readonly io: ProviderIo,
    private readonly client: LeaseClient,
    private readonly call: GarmCall,
    private readonly settings: GarmSettings,
  ) {
    this.leasing = { client, clock: io.clock, note: (text) => this.note(text) };
  }

  /**
   * Leases a node and starts the installation of the runner there. Repeated for the same instance, it continues with
   * its lease. If it fails, the lease is released.
   */
  async create(): Promise<ProviderInstance> {
    const bootstrap = await readBootstrap(this.io.streams.stdin);
    const { controller, pool } = this.call;
    if (bootstrap.pool !== '' && bootstrap.pool !== pool) {
      throw new CommandError(`the input is for pool ${bootstrap.pool}, and GARM_POOL_ID is ${pool}`);
    }
    if (bootstrap.image === '') throw new CommandError("the pool's image must be a label of Nodepool");
    const instance = { controller, pool, name: bootstrap.name, os: bootstrap.os, arch: bootstrap.arch };
    const specs = await readExtraSpecs(bootstrap.extraSpecs);
    const script = Buffer.from(nodeScript(bootstrap, specs, this.settings.runnerUser));
    const deadline = new AbortController();
    const timer = this.io.clock.schedule(this.settings.timeout * 1000, () =>
      deadline.abort(new Error(`no node within ${this.settings.timeout} s`)),
    );
    try {
      const signal = AbortSignal.any([this.io.interrupted, deadline.signal]);
      const lease = await this.install(bootstrap, instance, specs.priority, script, signal);
      return documentOf(lease, instance);
    } catch (error) {
      // The runner of an earlier call lives there.
      if (!(error instanceof GarmError)) await this.abandon(instance, error);
      throw error;
    } finally {
      timer.cancel();
    }
  }

  /** Deletes one instance; one that does not exist, or is not of this controller, is no error. */
  async delete(): Promise<void> {
    const found = await this.find();
    await this.release(found, 'deleted by GARM');
    if (found.length === 0) this.note(`instance ${this.call.instance} does not exist`);
  }

  /** Throws `GarmError` if the instance does not exist. */
  async get(): Promise<ProviderInstance> {
    const [own] = await this.find();
    if (own === undefined) throw new GarmError(`instance ${this.call.instance} does not exist`, NOT_FOUND);
    return documentOf(own.lease, own.instance);
  }

  async list(): Promise<ProviderInstance[]> {
    return (await this.all()).map(({ lease, instance }) => documentOf(lease, instance));
  }

  /** Deletes all instances of the controller; only those of the pool, if GARM names one. */
  async removeAll(): Promise<void> {
    await this.release(await this.all(), 'all instances deleted by GARM');
  }

  /** Nodes run until they are deleted. Throws `GarmError` if the instance does not exist. */
  async start(): Promise<void> {
    await this.get();
  }

  async stop(): Promise<void> {
    await this.get();
    throw new CommandError('nodes cannot be stopped; delete the instance');
  }

  private async install(
    bootstrap: Bootstrap,
    instance: StoredInstance,
    priority: number | undefined,
    script: Buffer,
    signal: AbortSignal,
  ): Promise<LeaseDocument> {
    const rank = priority ?? this.settings.priority;
    const wanted = {
      ...{ labels: [bootstrap.image], name: leaseNameOf(instance), lifetime: STARTUP_LIFETIME_S },
      data: leaseData(instance),
      ...(rank === undefined ? {} : { priority: rank }),
    };
    const { id } = await createLease(this.leasing, wanted, signal);
    const ssh = new SshClient(this.io.env, this.settings.identity, this.io.streams.stderr);
    const { user } = this.settings;
    await withReadyNode(this.leasing, await this.client.get(id, { signal }), { ssh, user }, signal, async (target) => {
      const file = `/tmp/nodepool-garm-${this.io.random.uuidHex()}`;
      const command = posix(startCommand(script, id, file));
      const { child, exited } = ssh.start(target, command, ['pipe', 'ignore', 'pipe']);
      child.stderr?.pipe(this.io.streams.stderr, { end: false });
      // A closed connection is reported by the exit status.
      child.stdin?.on('error', () => undefined).end(script);
      const { code } = await exited;
      if (code === REMOTE_OCCUPIED) {
        throw new GarmError(
          `a runner of instance ${instance.name} is already installed on node ${target.id}`,
          DUPLICATE,
        );
      }
      if (code !== 0) {
        const why =
          code === REMOTE_TRUNCATED ? 'its script did not arrive completely' : `ssh ended with ${code ?? '?'}`;
        throw new CommandError(`the runner cannot be installed on node ${target.id}: ${why}`);
      }
    });
    return await this.client.renew(id, { lifetime: this.settings.lifetime, signal });
  }

  private async abandon(instance: StoredInstance, error: unknown): Promise<void> {
    try {
      const leases = await leasesNamed(this.leasing, leaseNameOf(instance));
      await releaseAll(this.leasing, leases, 'unknown', `not created: ${reasonOf(error)}`);
    } catch (failure) {
      this.note(`the lease is not released and will expire: ${reasonOf(failure)}`);
    }
  }

  /** Resolves with the open leases of the instance that GARM names by its id or, before there is one, by its name. */
  private async find(): Promise<OwnLease[]> {
    const { instance: wanted, pool, controller } = this.call;
    if (LEASE_ID.test(wanted)) {
      const lease = await this.leaseWithId(wanted);
      if (lease !== undefined) return this.own([lease]);
    }
    if (pool === '') return (await this.all()).filter(({ instance }) => instance.name === wanted);
    return this.own(await leasesNamed(this.leasing, leaseNameOf({ controller, pool, name: wanted })));
  }

  private async leaseWithId(id: string): Promise<LeaseDocument | undefined> {
    try {
      return await this.client.get(id);
    } catch (error) {
      if (error instanceof LeaseRequestError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Resolves with all open leases of the controller, and of the pool if GARM names one. */
  private async all(): Promise<OwnLease[]> {
    const leases = new Map<string, LeaseDocument>();
    // In this order, a lease that becomes ready meanwhile is not missed.
    for (const state of ['waiting', 'ready'] as const) {
      for await (const lease of this.client.list({ state })) leases.set(lease.id, lease);
    }
    return this.own([...leases.values()]);
  }

  /** Returns those of the leases that are open and belong to exactly this controller and pool. */
  private own(leases: readonly LeaseDocument[]): OwnLease[] {
    const { controller, pool } = this.call;
    return leases.flatMap((lease) => {
      const instance = instanceOf(lease);
      if (instance === undefined || !isOpen(lease) || instance.controller !== controller) return [];
      return pool === '' || instance.pool === pool ? [{ lease, instance }] : [];
    });
  }

  private async release(found: readonly OwnLease[], why: string): Promise<void> {
    for (const { lease, instance } of found) {
      this.note(`deleting instance ${instance.name} (pool ${instance.pool}, lease ${lease.id}): ${why}`);
      await releaseAll(this.leasing, [lease], 'unknown', why);
    }
  }

  private note(text: string): void {
    this.io.streams.stderr.write(`nodepool-garm: ${printable(text)}\n`);
  }
}
