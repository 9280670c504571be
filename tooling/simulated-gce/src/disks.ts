/** Disks of instances, which are separate resources. */

import { linkTo, newId, type GceState } from './cloud-state.js';
import { messageAt, messagesAt, textAt, textsAt, type Message } from './messages.js';
import type { Images } from './images.js';
import { alreadyExists } from './api-error.js';

export interface Disk {
  readonly id: string;
  readonly project: string;
  readonly zone: string;
  readonly name: string;
  readonly instance: string;
  /** URL. */
  readonly image: string;
  /** GB. */
  readonly size: string;
  readonly type: string;
  readonly labels: Readonly<Record<string, string>>;
  /** If true, the disk is deleted with its instance. */
  readonly autoDelete: boolean;
}

export class Disks {
  private readonly disks = new Map<string, Disk>();

  constructor(
    private readonly state: GceState,
    private readonly images: Images,
    private readonly instanceExists: (zone: string, name: string) => boolean,
  ) {}

  /** Returns the boot disk described in a creation request. Throws if its name is in use. */
  bootDiskOf(project: string, zone: string, body: Message): Disk {
    const [disk = {}] = messagesAt(body, 'disks');
    const parameters = messageAt(disk, 'initializeParams');
    const instance = textAt(body, 'name') ?? '';
    const name = textAt(parameters, 'diskName') ?? instance;
    if (this.existing(project).some((each) => each.zone === zone && each.name === name)) {
      throw alreadyExists(`projects/${project}/zones/${zone}/disks/${name}`);
    }
    const { selfLink, diskSizeGb } = this.images.imageAt(textAt(parameters, 'sourceImage') ?? '');
    const size = textAt(parameters, 'diskSizeGb') ?? String(diskSizeGb);
    const type = textAt(parameters, 'diskType')?.split('/').at(-1) ?? 'pd-standard';
    const labels = textsAt(parameters, 'labels');
    const autoDelete = disk['autoDelete'] === true;
    const id = newId(this.state.random);
    return { id, project, zone, name, instance, image: String(selfLink), size, type, labels, autoDelete };
  }

  add(disk: Disk): void {
    this.disks.set(`${disk.zone}/${disk.name}`, disk);
  }

  list(project: string, zone: string): readonly Message[] {
    return this.existing(project)
      .filter((disk) => disk.zone === zone)
      .map((disk) => this.view(disk));
  }

  /** Returns the disk as part of its instance. */
  attachedView({ project, zone, name, autoDelete, size }: Disk): Message {
    return {
      kind: 'compute#attachedDisk',
      index: 0,
      boot: true,
      autoDelete,
      type: 'PERSISTENT',
      mode: 'READ_WRITE',
      deviceName: 'persistent-disk-0',
      diskSizeGb: size,
      source: linkTo(this.state, `projects/${project}/zones/${zone}/disks/${name}`),
    };
  }

  private existing(project: string): Disk[] {
    return [...this.disks.values()].filter(
      (disk) => disk.project === project && (!disk.autoDelete || this.instanceExists(disk.zone, disk.instance)),
    );
  }

  private view({ id, project, zone, name, instance, image, size, type, labels }: Disk): Message {
    const { state } = this;
    const scope = `projects/${project}/zones/${zone}`;
    const isAttached = this.instanceExists(zone, instance);
    return {
      kind: 'compute#disk',
      id,
      name,
      zone: linkTo(state, scope),
      status: 'READY',
      sizeGb: size,
      sourceImage: image,
      type: linkTo(state, `${scope}/diskTypes/${type}`),
      labels,
      ...(isAttached ? { users: [linkTo(state, `${scope}/instances/${instance}`)] } : {}),
      selfLink: linkTo(state, `${scope}/disks/${name}`),
    };
  }
}
