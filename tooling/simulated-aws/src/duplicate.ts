/** Copies resources as another person does, with all tags. */

import { addImage } from './ec2/images.js';
import { newInterface, takeAddresses } from './ec2/interfaces.js';
import { begin } from './ec2/lifecycle.js';
import type { Instance } from './ec2/records.js';
import { addSnapshot } from './ec2/snapshots.js';
import type { Resource } from './ec2/table.js';
import { newVolume } from './ec2/volumes.js';
import type { Region } from './region.js';

type TagChanges = Readonly<Record<string, string | undefined>>;

/** Returns the id of the copy. Throws if the region has no such resource. */
export function duplicate(region: Region, id: string, changes: TagChanges = {}): string {
  const source = region.tableOf(id)?.get(id);
  if (source === undefined) throw new Error(`there is no resource ${id} in ${region.name}`);
  const tags = changedTags(source, changes);
  const instance = region.instances.get(id);
  if (instance !== undefined) return copyInstance(region, instance, tags);
  const volume = region.volumes.get(id);
  if (volume !== undefined) return region.volumes.add(newVolume(region, { ...volume, tags })).id;
  const nic = region.interfaces.get(id);
  if (nic !== undefined) {
    const subnet = region.subnets.get(nic.subnetId);
    if (subnet === undefined) throw new Error(`there is no subnet ${nic.subnetId}`);
    const addresses = takeAddresses(subnet, nic.ipv6.length);
    return region.interfaces.add(newInterface(region, { ...nic, ...addresses, publicIp: undefined, tags })).id;
  }
  const address = region.addresses.get(id);
  if (address !== undefined) {
    const fresh = { associationId: undefined, interfaceId: undefined, publicIp: region.newPublicIp() };
    return region.addresses.add({ ...region.newResource(region.addresses.kind, tags), ...fresh }).id;
  }
  const host = region.hosts.get(id);
  if (host !== undefined) {
    return region.hosts.add({ ...host, ...region.newResource(region.hosts.kind, tags), clientToken: undefined }).id;
  }
  const template = region.templates.get(id);
  if (template !== undefined) {
    const resource = region.newResource(region.templates.kind, tags);
    return region.templates.add({ ...template, ...resource, name: `${template.name}-copy-${resource.order}` }).id;
  }
  const snapshot = region.snapshots.get(id);
  if (snapshot !== undefined) {
    const copy = addSnapshot(region, { ...snapshot, tags });
    copy.state = snapshot.state;
    copy.completedAt = snapshot.completedAt;
    return copy.id;
  }
  const image = region.images.get(id);
  if (image === undefined) throw new Error(`${id} is of a kind that cannot be copied`);
  const volumes = image.volumes.map((each) => ({
    ...each,
    snapshotId: each.snapshotId === undefined ? undefined : duplicate(region, each.snapshotId),
  }));
  const { id: _id, order, createdAt: _createdAt, tags: _tags, ...fields } = image;
  return addImage(
    region,
    { ...fields, name: `${image.name} copy ${order}-${region.images.all().length}`, volumes },
    tags,
  ).id;
}

function changedTags({ tags }: Resource, changes: TagChanges): Map<string, string> {
  const changed = new Map(tags);
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) changed.delete(key);
    else changed.set(key, value);
  }
  return changed;
}

/** The copy has parts of its own, and was launched without a client token. */
function copyInstance(region: Region, source: Instance, tags: ReadonlyMap<string, string>): string {
  const resource = region.newResource(region.instances.kind, tags);
  const interfaceIds = source.interfaceIds.map((id) => {
    const copy = region.interfaces.get(duplicate(region, id));
    const attachment = region.interfaces.get(id)?.attachment;
    if (copy !== undefined && attachment !== undefined) copy.attachment = { ...attachment, instanceId: resource.id };
    return copy?.id ?? '';
  });
  const attached = source.volumeIds.filter((id) => region.volumes.get(id) !== undefined);
  const volumeIds = attached.map((id) => {
    const copy = region.volumes.get(duplicate(region, id));
    const attachment = region.volumes.get(id)?.attachment;
    if (copy !== undefined && attachment !== undefined) copy.attachment = { ...attachment, instanceId: resource.id };
    return copy?.id ?? '';
  });
  const own = {
    reservationId: region.newId('r'),
    clientToken: '',
    launchIndex: 0,
    fleetId: undefined,
    hostId: undefined,
  };
  const fresh = { history: [], addressAt: Infinity, stateReason: undefined, transition: '', interruptedAt: undefined };
  const instance: Instance = { ...source, ...resource, ...own, ...fresh, interfaceIds, volumeIds };
  region.instances.add(instance);
  begin(region, instance, undefined);
  return instance.id;
}
