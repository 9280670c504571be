/** Parses a server of the compute service into a typed object. */

import { entriesAt, isJsonObject, numberAt, objectAt, stringAt, type JsonObject } from '@nodepool/core';
import { requiredText } from './answers.js';

export interface ServerAddress {
  /** Name of the network. */
  readonly network: string;
  readonly address: string;
  readonly version: 4 | 6;
  readonly floating: boolean;
}

export interface Server {
  readonly id: string;
  readonly name: string;
  /** `BUILD`, `ACTIVE`, `ERROR`, `DELETED`, … */
  readonly status: string;
  /** Current task, e.g. `deleting`; undefined if there is none. */
  readonly task: string | undefined;
  /** Reason of the status ERROR. */
  readonly fault: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly addresses: readonly ServerAddress[];
  readonly availabilityZone: string | undefined;
  readonly hostId: string | undefined;
  /** An id before microversion 2.47, the flavor's properties since. */
  readonly flavor: { readonly vcpus: number; readonly ram: number; readonly name?: string } | { readonly id: string };
  /** Ids of its volumes. */
  readonly volumes: readonly string[];
}

/** Throws `TransientError` if the server has no id or status. */
export function readServer(server: JsonObject, operation: string): Server {
  const fault = objectAt(server, 'fault');
  return {
    id: requiredText(server, 'id', operation),
    name: stringAt(server, 'name') ?? '',
    status: requiredText(server, 'status', operation),
    task: filled(stringAt(server, 'OS-EXT-STS:task_state')),
    fault: fault === undefined ? undefined : filled(stringAt(fault, 'message')?.trim()),
    metadata: textValues(objectAt(server, 'metadata') ?? {}),
    addresses: readAddresses(objectAt(server, 'addresses') ?? {}),
    availabilityZone: filled(stringAt(server, 'OS-EXT-AZ:availability_zone')),
    hostId: filled(stringAt(server, 'hostId')),
    flavor: readFlavor(objectAt(server, 'flavor') ?? {}),
    volumes: volumesOf(server),
  };
}

function readFlavor(flavor: JsonObject): Server['flavor'] {
  const vcpus = numberAt(flavor, 'vcpus');
  const ram = numberAt(flavor, 'ram');
  if (vcpus === undefined || ram === undefined) return { id: stringAt(flavor, 'id') ?? '' };
  const name = stringAt(flavor, 'original_name');
  return { vcpus, ram, ...(name === undefined ? {} : { name }) };
}

function readAddresses(addresses: JsonObject): readonly ServerAddress[] {
  return Object.entries(addresses).flatMap(([network, list]) => {
    const items: readonly unknown[] = Array.isArray(list) ? (list as readonly unknown[]) : [];
    return items.flatMap((item): readonly ServerAddress[] => {
      const address = isJsonObject(item) ? stringAt(item, 'addr') : undefined;
      if (!isJsonObject(item) || address === undefined) return [];
      const version = numberAt(item, 'version') === 6 ? 6 : 4;
      return [{ network, address, version, floating: stringAt(item, 'OS-EXT-IPS:type') === 'floating' }];
    });
  });
}

function volumesOf(server: JsonObject): readonly string[] {
  return entriesAt(server, 'os-extended-volumes:volumes_attached').flatMap(
    ({ section }) => stringAt(section, 'id') ?? [],
  );
}

/** Returns the entries of a mapping whose values are strings. */
export function textValues(mapping: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(mapping).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function filled(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
