/** Starts a simulated AWS. */

import {
  CallLog,
  CloudServer,
  CloudState,
  FaultPlan,
  type CloudConnections,
  type Route,
} from '@nodepool/simulated-cloud';
import { Account } from './account.js';
import type { AwsCredentials, SimulatedAws, SimulatedAwsOptions } from './api.js';
import type { AwsCall, Handlers } from './call.js';
import { CapacityBook } from './capacity.js';
import { Dispatcher, type AwsContext } from './dispatch.js';
import { duplicate } from './duplicate.js';
import { EbsDirect } from './ebs.js';
import { addressHandlers, interfaceHandlers } from './ec2/addresses.js';
import { fleetHandlers } from './ec2/fleets.js';
import { hostHandlers } from './ec2/hosts.js';
import { imageHandlers } from './ec2/images.js';
import { importHandlers } from './ec2/imports.js';
import { instanceHandlers } from './ec2/instances.js';
import { keyHandlers } from './ec2/keys-and-tags.js';
import { currentState, interrupt, recommendRebalance, stop, terminate } from './ec2/lifecycle.js';
import { networkHandlers } from './ec2/network.js';
import type { Instance } from './ec2/records.js';
import { snapshotHandlers } from './ec2/snapshots.js';
import { templateHandlers } from './ec2/templates.js';
import { typeHandlers } from './ec2/types-and-offers.js';
import { volumeHandlers } from './ec2/volumes.js';
import type { AwsApiCall, AwsFault } from './faults.js';
import { inspectorOf } from './inspector.js';
import { AwsError } from './protocol/aws-error.js';
import type { Service } from './protocol/service-model.js';
import { Region, type World } from './region.js';
import { Buckets, storedBytes } from './s3/buckets.js';
import { s3Handlers } from './s3/handlers.js';
import { addSampleImage, fillRegion } from './sample.js';
import { quotaHandlers } from './service-quotas.js';
import { AMAZON, BUCKET, DEFAULT_SETTINGS, QUEUE, REGION, REGIONS } from './settings.js';
import { Queues } from './sqs.js';
import { stsHandlers } from './sts.js';
import { Timeline } from './timeline.js';

/** Maximum size of a body in bytes: that of a part of an upload. */
const MAX_BODY_BYTES = 512 * 2 ** 20;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];

/** Starts a simulated AWS. Rejects if the port is in use. */
export async function startSimulatedAws(options: SimulatedAwsOptions = {}): Promise<SimulatedAws> {
  const cloud = new Cloud(options);
  await cloud.listen(options.port ?? 0);
  return cloud.control();
}

class Cloud {
  private readonly state;
  private readonly faults;
  private readonly calls = new CallLog<AwsApiCall>();
  private readonly timeline;
  private readonly capacity;
  private readonly account;
  private readonly buckets = new Buckets();
  private readonly queues: Queues;
  private readonly regions: ReadonlyMap<string, Region>;
  private readonly server;
  private readonly operations: Readonly<Record<string, readonly string[]>>;

  constructor(options: SimulatedAwsOptions) {
    const state = new CloudState(options, DEFAULT_SETTINGS);
    this.state = state;
    this.faults = new FaultPlan<AwsFault, AwsApiCall>(state.random);
    this.timeline = new Timeline(state.clock);
    this.account = new Account(state);
    this.capacity = new CapacityBook(state.clock);
    const world: World = {
      ...{ clock: state.clock, random: state.random, timeline: this.timeline, capacity: this.capacity },
      get settings() {
        return state.settings;
      },
      publish: (region, event) => {
        const isDelivered = region === REGION && state.settings.queueEvents.includes(event.type);
        if (isDelivered) this.queues.deliver(QUEUE, region, event);
      },
    };
    this.queues = new Queues(world, () => state.url);
    this.regions = new Map(
      [...REGIONS].map(([name, letters]) => [
        name,
        new Region(
          name,
          letters.map((letter) => name + letter),
          world,
        ),
      ]),
    );
    for (const region of this.regions.values()) region.addOld(() => fillRegion(region));
    const handlers = this.handlers();
    const names = Object.entries(handlers).map(([service, known]) => [service, Object.keys(known)]);
    this.operations = Object.fromEntries(names) as Readonly<Record<string, readonly string[]>>;
    const dispatcher = new Dispatcher({
      ...{ world, random: state.random, account: this.account, handlers },
      regionNamed: (name) => this.region(name),
    });
    this.server = new CloudServer({
      ...{ state, faults: this.faults, calls: this.calls, bodyLimit: MAX_BODY_BYTES, form: dispatcher.form },
      routes: METHODS.map((method): Route<AwsFault> => ({
        ...{ operation: 'aws', method, path: '/*', handle: (context) => dispatcher.handle(context) },
      })),
      describe: (call, context: AwsContext) => dispatcher.describe(call, context),
    });
  }

  async listen(port: number): Promise<void> {
    this.state.url = `http://127.0.0.1:${await this.server.listen(port)}`;
  }

  private region(name: string): Region {
    const region = this.regions.get(name);
    if (region === undefined) throw new AwsError('InvalidRegion', `The region ${name} does not exist`);
    return region;
  }

  private handlers(): Readonly<Record<Service, Handlers>> {
    const { account, buckets, queues, state } = this;
    const named = (name: string): Region => this.region(name);
    const regionOf = (call: AwsCall): Region => named(call.region);
    const sources = {
      disk: (bucket: string, key: string) => buckets.disk(bucket, key),
      hasRole: (name: string) => name === 'vmimport' && account.hasImportRole,
    };
    const ebs = new EbsDirect(regionOf, () => state.settings.storesContent);
    return {
      ec2: {
        ...instanceHandlers(regionOf),
        ...fleetHandlers(regionOf),
        ...templateHandlers(regionOf),
        ...volumeHandlers(regionOf),
        ...hostHandlers(regionOf),
        ...networkHandlers(regionOf),
        ...interfaceHandlers(regionOf),
        ...addressHandlers(regionOf),
        ...keyHandlers(regionOf),
        ...imageHandlers(regionOf, named),
        ...snapshotHandlers(regionOf, named),
        ...importHandlers(regionOf, sources),
        ...typeHandlers(regionOf),
      },
      s3: s3Handlers({ buckets, settings: () => state.settings, newId: () => state.random.uuidHex() }),
      ebs: ebs.handlers(),
      'service-quotas': quotaHandlers(regionOf),
      sqs: queues.handlers(),
      sts: stsHandlers(account),
    };
  }

  /** Returns an instance with its region. Throws if there is none. */
  private instance(id: string): { readonly region: Region; readonly instance: Instance } {
    this.timeline.settle();
    for (const region of this.regions.values()) {
      const instance = region.instances.get(id);
      if (instance !== undefined) return { region, instance };
    }
    throw new Error(`there is no instance ${id}`);
  }

  private spotInstance(id: string): { readonly region: Region; readonly instance: Instance } {
    const found = this.instance(id);
    if (found.instance.market !== 'spot' || currentState(found.instance) !== 'running') {
      throw new Error(`${id} is not a running spot instance`);
    }
    return found;
  }

  control(): SimulatedAws {
    const { state, faults, calls, capacity, account, buckets, queues, timeline, regions } = this;
    const connections: CloudConnections = this.server;
    const main = this.region(REGION);
    const groupIds = main.groups.all().map(({ id }) => id);
    const amazonImages = main.images.all().filter(({ ownerId, architecture, rootDeviceName }) => {
      return ownerId === AMAZON && architecture === 'x86_64' && rootDeviceName === '/dev/xvda';
    });
    const { accessKeyId, secretAccessKey } = account.user;
    return {
      ...{ url: state.url, credentials: { accessKeyId, secretAccessKey }, faults, calls, connections },
      subnets: Object.fromEntries(main.subnets.all().map(({ zone, id }) => [zone, id])),
      securityGroups: [groupIds[0] ?? '', groupIds[1] ?? ''],
      publicImageId: amazonImages.at(-1)?.id ?? '',
      queueUrl: queues.urlOf(QUEUE),
      operations: this.operations,
      inspect: inspectorOf({ regions: [...regions.values()], buckets, queues, timeline }),
      capacity: {
        limit: (match, count, period) => capacity.limit(match, count, period),
        withdraw: (type, zone) => capacity.withdraw(type, zone),
        setSpotPrice: (type, zone, price) => capacity.setSpotPrice(type, zone, price),
        setFreeAddresses: (subnetId, count) => {
          const subnet = [...regions.values()].map((one) => one.subnets.get(subnetId)).find((one) => one !== undefined);
          if (subnet === undefined) throw new Error(`there is no subnet ${subnetId}`);
          subnet.capacity = subnet.used.size + count;
        },
      },
      permissions: account.permissions,
      configure: (changes) => state.configure(changes),
      setQuota: (code, value, region = REGION) => this.region(region).quotas.set(code, value),
      issueCredentials: (lifetimeMs) => credentialsOf(account.issue(lifetimeMs)),
      expireCredentials: () => account.expireSessions(),
      revokeCredentials: (isRevoked) => account.revokeUser(isRevoked),
      webIdentityToken: () => account.webIdentityToken(),
      setImportRole: (exists) => {
        account.hasImportRole = exists;
      },
      interruptSpot: (id, { rebalance = false } = {}) => {
        const { region, instance } = this.spotInstance(id);
        if (rebalance) recommendRebalance(region, instance);
        interrupt(region, instance);
      },
      recommendRebalance: (id) => {
        const { region, instance } = this.spotInstance(id);
        recommendRebalance(region, instance);
      },
      endInstance: (id, target, reason) => {
        const { region, instance } = this.instance(id);
        const stateReason = { code: reason, message: `${reason}: ${reason}` };
        if (target === 'stopped') stop(region, instance, region.now, stateReason);
        else terminate(region, instance, region.now, stateReason);
      },
      forgetInstance: (id) => this.instance(id).region.instances.forget(id),
      addImage: (spec, region = REGION) => {
        const target = this.region(region);
        return target.addOld(() => addSampleImage(target, spec));
      },
      duplicate: (id, tags) => {
        timeline.settle();
        const region = [...regions.values()].find((one) => one.tableOf(id)?.get(id) !== undefined);
        if (region === undefined) throw new Error(`there is no resource ${id}`);
        return region.addOld(() => duplicate(region, id, tags));
      },
      putObject: (key, content, tags = {}) => {
        const bytes = storedBytes(Buffer.from(content), state.settings.storesContent);
        const etag = `"${bytes.md5.toString('hex')}"`;
        const own = { etag, modifiedAt: state.clock.now(), type: undefined, metadata: {}, tags };
        buckets.get(BUCKET)?.objects.set(key, { ...bytes, ...own });
      },
      sendMessage: (body) => {
        queues.send(QUEUE, body);
      },
      close: () => this.server.close(),
    };
  }
}

function credentialsOf({ accessKeyId, secretAccessKey, sessionToken }: AwsCredentials): AwsCredentials {
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}
