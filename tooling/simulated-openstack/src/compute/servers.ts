/** The lifecycle of servers from scheduling to deletion, with ports, volumes and faults. */

import type { BootBehaviour, FaultPlan, ServerFacts } from '../faults.js';
import type { OpenStackState } from '../cloud-state.js';
import type { Caller } from '../http/request-context.js';
import type { NetworkStore } from '../network/networks.js';
import { LARGEST_DISK } from '../settings.js';
import { newUuid } from '../text.js';
import { Table } from '../table.js';
import { volumeQuotaProblem } from '../volume/quota.js';
import type { VolumeStore } from '../volume/volumes.js';
import { computeError } from './errors.js';
import { deletionBehaviour, secondsIn } from './requested-faults.js';
import type { ServerRecord, ServerSpec } from './records.js';

const HOST_ID = '67bc6384ec7560a895b4283b44e3222a927e2fb984e26bfee0e9db43';
const ROOT_DEVICE = '/dev/sda';
/** Share of the boot time until a server has a host and ports. */
const SCHEDULING_SHARE = 0.3;

export interface Usage {
  readonly instances: number;
  readonly cores: number;
  readonly ram: number;
}

export class ServerStore {
  readonly table = new Table<ServerRecord>();

  constructor(
    private readonly state: OpenStackState,
    private readonly networks: NetworkStore,
    private readonly volumes: VolumeStore,
    private readonly faults: () => FaultPlan,
    private readonly nameOfProject: (id: string) => string,
  ) {}

  /** Starts to create a server. */
  create(spec: ServerSpec, name: string, caller: Caller): ServerRecord {
    const now = this.state.clock.now();
    const id = newUuid(this.state.random);
    const { metadata } = spec;
    const facts: ServerFacts = { id, name, project: caller.projectName, metadata };
    const server: ServerRecord = {
      id,
      name,
      spec,
      metadata,
      project: caller.projectId,
      userId: caller.userId,
      createdAt: now,
      updatedAt: now,
      launchedAt: null,
      terminatedAt: null,
      status: 'BUILD',
      taskState: 'scheduling',
      fault: null,
      hostId: '',
      volumes: new Map<string, boolean>(),
      shelvedImageId: undefined,
      behaviours: this.faults().behavioursOf(facts),
      failedDeletions: 0,
      timer: undefined,
    };
    this.table.add(server);
    this.boot(server);
    return server;
  }

  /**
   * Starts to delete a server; repeated calls have no effect. Throws an API error if its behaviour is a conflict.
   */
  delete(server: ServerRecord): void {
    if (server.taskState === 'deleting') return;
    const behaviour = deletionBehaviour(server);
    if (behaviour === 'conflict') {
      server.failedDeletions += 1;
      const where = `vm_state ${vmStateOf(server)}`;
      throw computeError(409, `Cannot 'delete' instance ${server.id} while it is in ${where}`);
    }
    server.taskState = 'deleting';
    this.touch(server);
    if (behaviour === 'never') return;
    const delayMs = this.state.settings.deleteMs + secondsIn(server, 'ostack_delete_delay') * 1000;
    this.after(server, delayMs, () => {
      if (behaviour === 'error') this.failDeletion(server);
      else this.finishDeletion(server);
    });
  }

  /** Stops, starts or restarts a server immediately. */
  setPower(server: ServerRecord, status: 'ACTIVE' | 'SHUTOFF'): void {
    server.status = status;
    this.touch(server);
  }

  /** Takes a server from its host. Its ports remain. */
  shelve(server: ServerRecord, imageId: string | undefined): void {
    Object.assign(server, { status: 'SHELVED_OFFLOADED', hostId: '', shelvedImageId: imageId });
    for (const port of this.networks.portsOf(server.id)) port.status = 'DOWN';
    this.touch(server);
  }

  /** Starts a shelved server on a host. */
  unshelve(server: ServerRecord): void {
    Object.assign(server, { status: 'ACTIVE', hostId: HOST_ID, shelvedImageId: undefined });
    for (const port of this.networks.portsOf(server.id)) port.status = 'ACTIVE';
    this.touch(server);
  }

  /** Puts a server into ERROR from any state. */
  fail(server: ServerRecord, message: string, code = 500): void {
    server.timer?.cancel();
    Object.assign(server, { status: 'ERROR', taskState: null, fault: { code, message, at: this.state.clock.now() } });
    this.touch(server);
  }

  /** Removes a server and its ports immediately. */
  remove(server: ServerRecord): void {
    server.timer?.cancel();
    this.finishDeletion(server);
  }

  touch(server: ServerRecord): void {
    server.updatedAt = this.state.clock.now();
  }

  used(projectId: string): Usage {
    let [instances, cores, ram] = [0, 0, 0];
    for (const { project, spec } of this.table.all()) {
      if (project !== projectId) continue;
      instances += 1;
      cores += spec.flavor.vcpus;
      ram += spec.flavor.ram;
    }
    return { instances, cores, ram };
  }

  /** Stops all tasks in progress. */
  close(): void {
    for (const server of this.table.all()) server.timer?.cancel();
  }

  private boot(server: ServerRecord): void {
    const behaviour = server.behaviours.find((candidate) => 'boot' in candidate);
    const ownMs = behaviour?.boot === 'ms' ? behaviour.ms : this.state.settings.bootMs;
    const totalMs = ownMs + secondsIn(server, 'ostack_spawn_delay') * 1000;
    this.after(server, totalMs * SCHEDULING_SHARE, () => {
      const problem = this.schedule(server);
      if (problem !== undefined) {
        this.dismantle(server);
        this.fail(server, problem);
        return;
      }
      if (behaviour?.boot === 'never') return;
      this.after(server, totalMs * (1 - SCHEDULING_SHARE), () => this.finishBoot(server, behaviour));
    });
  }

  /** Assigns a host, ports and volumes to a server. Returns the reason if that fails. */
  private schedule(server: ServerRecord): string | undefined {
    const { spec, id } = server;
    if (spec.flavor.disk > LARGEST_DISK) return 'No valid host was found. ';
    for (const wanted of spec.interfaces) {
      const network = 'networkId' in wanted ? this.networks.networks.get(wanted.networkId) : undefined;
      if (network?.external === true && network.project !== server.project) {
        return `Build of instance ${id} aborted: Failed to allocate the network(s), not rescheduling.`;
      }
      const port = 'portId' in wanted ? this.networks.ports.get(wanted.portId) : undefined;
      if (port?.name.startsWith('nobind') === true) return exhausted(id);
    }
    this.bindPorts(server);
    const problem = this.attachBootVolume(server);
    if (problem !== undefined) return `Build of instance ${id} aborted: ${problem}`;
    server.hostId = HOST_ID;
    server.taskState = 'spawning';
    this.touch(server);
    return undefined;
  }

  private bindPorts(server: ServerRecord): void {
    for (const wanted of server.spec.interfaces) {
      const port =
        'portId' in wanted
          ? this.networks.ports.get(wanted.portId)
          : this.networks.addPort({
              project: server.project,
              networkId: wanted.networkId,
              securityGroups: server.spec.securityGroupIds,
              madeByNova: true,
            });
      if (port === undefined) continue;
      Object.assign(port, { deviceId: server.id, deviceOwner: 'compute:nova', status: 'ACTIVE' });
      this.networks.touch(port);
    }
  }

  private attachBootVolume(server: ServerRecord): string | undefined {
    const { bootVolume } = server.spec;
    if (bootVolume === null) return undefined;
    const { source, deleteOnTermination } = bootVolume;
    if ('volumeId' in source) {
      const volume = this.volumes.table.get(source.volumeId);
      if (volume !== undefined) this.volumes.attach(volume, server.id, ROOT_DEVICE);
      server.volumes.set(source.volumeId, deleteOnTermination);
      return undefined;
    }
    const quota = this.state.quotas.enforced(this.nameOfProject(server.project));
    const problem = volumeQuotaProblem(quota, this.volumes.used(server.project), source.sizeGb);
    if (problem !== undefined) return problem;
    const volume = this.volumes.create({
      project: server.project,
      userId: server.userId,
      name: '',
      description: '',
      sizeGb: source.sizeGb,
      imageId: source.imageId,
      imageProperties: server.spec.imageProperties,
      metadata: {},
    });
    this.volumes.attach(volume, server.id, ROOT_DEVICE);
    server.volumes.set(volume.id, deleteOnTermination);
    return undefined;
  }

  private finishBoot(server: ServerRecord, behaviour: BootBehaviour | undefined): void {
    const asked = server.metadata['ostack_fail'];
    const problem =
      behaviour?.boot === 'error'
        ? behaviour.message.replaceAll('{id}', server.id)
        : asked === 'spawn'
          ? `Build of instance ${server.id} aborted: fault injection: ostack_fail=spawn`
          : asked === 'resched'
            ? exhausted(server.id)
            : undefined;
    if (problem !== undefined) {
      this.dismantle(server);
      this.fail(server, problem, behaviour?.boot === 'error' ? behaviour.code : undefined);
      return;
    }
    Object.assign(server, { status: 'ACTIVE', taskState: null, launchedAt: this.state.clock.now() });
    this.touch(server);
  }

  private failDeletion(server: ServerRecord): void {
    server.failedDeletions += 1;
    this.releasePorts(server);
    this.fail(server, 'Failed to terminate instance: fault injection: ostack_fail=delete', 400);
  }

  private finishDeletion(server: ServerRecord): void {
    this.dismantle(server);
    server.terminatedAt = this.state.clock.now();
    server.taskState = null;
    this.touch(server);
    this.table.remove(server.id, this.state.clock.now());
  }

  /** Releases a server's host, ports and volumes. */
  private dismantle(server: ServerRecord): void {
    this.releasePorts(server);
    if (server.status === 'BUILD') server.hostId = '';
    for (const [id, goesToo] of server.volumes) {
      const volume = this.volumes.table.get(id);
      if (volume === undefined) continue;
      if (goesToo) this.volumes.delete(volume);
      else this.volumes.detach(volume);
    }
    server.volumes.clear();
  }

  private releasePorts(server: ServerRecord): void {
    for (const port of this.networks.portsOf(server.id)) {
      if (port.madeByNova) this.networks.removePort(port);
      else Object.assign(port, { deviceId: '', deviceOwner: '', status: 'DOWN' });
    }
  }

  private after(server: ServerRecord, delayMs: number, work: () => void): void {
    server.timer?.cancel();
    server.timer = this.state.clock.schedule(delayMs, work);
  }
}

export function vmStateOf({ status }: ServerRecord): string {
  switch (status) {
    case 'BUILD':
      return 'building';
    case 'SHUTOFF':
      return 'stopped';
    case 'SHELVED_OFFLOADED':
      return 'shelved_offloaded';
    case 'ACTIVE':
      return 'active';
    case 'ERROR':
      return 'error';
  }
}

function exhausted(id: string): string {
  return `Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance ${id}.`;
}
