/** Interfaces and public addresses: shown, listed, and deleted when nothing uses them. */

import { type JsonObject } from '@nodepool/core';
import type { Cloud } from './cloud.js';
import { groupPath, resourcePath, type Answer, type Exchange, type Route } from './exchange.js';
import { listIn, objectIn, textIn } from './machines.js';
import { notFound, Refusal } from './refusal.js';
import { idOf, type Resource } from './store.js';

const NIC = 'Microsoft.Network/networkInterfaces';
const IP = 'Microsoft.Network/publicIPAddresses';

export class Networks {
  constructor(private readonly cloud: Cloud) {}

  routes(): readonly Route[] {
    return [
      {
        operation: 'networkInterfaces.get',
        method: 'GET',
        path: resourcePath(NIC),
        handle: (exchange) => this.getNic(exchange),
      },
      {
        operation: 'networkInterfaces.list',
        method: 'GET',
        path: groupPath(NIC),
        handle: (exchange) => this.list(NIC, exchange),
      },
      {
        operation: 'networkInterfaces.delete',
        method: 'DELETE',
        path: resourcePath(NIC),
        handle: ({ params }) => this.delete(NIC, params, 'virtualMachine', 'NicInUse'),
      },
      {
        operation: 'publicIPAddresses.list',
        method: 'GET',
        path: groupPath(IP),
        handle: (exchange) => this.list(IP, exchange),
      },
      {
        operation: 'publicIPAddresses.delete',
        method: 'DELETE',
        path: resourcePath(IP),
        handle: ({ params }) => this.delete(IP, params, 'ipConfiguration', 'PublicIPAddressCannotBeDeleted'),
      },
    ];
  }

  private getNic({ params, query }: Exchange): Answer {
    const [group = '', name = ''] = params;
    const nic = this.cloud.store.find(NIC, group, name);
    if (nic === undefined) throw notFound(idOf(NIC, group, name));
    const expand = query.get('$expand')?.toLowerCase() === 'ipconfigurations/publicipaddress';
    return { status: 200, body: this.cloud.shown(nic, expand ? { ipConfigurations: this.expanded(nic) } : {}) };
  }

  private expanded(nic: Resource): readonly JsonObject[] {
    return listIn(nic.properties, 'ipConfigurations').map((configuration) => {
      const properties = objectIn(configuration, 'properties');
      const address = this.cloud.store.get(textIn(objectIn(properties, 'publicIPAddress'), 'id'));
      if (address === undefined) return configuration;
      return { ...configuration, properties: { ...properties, publicIPAddress: this.cloud.shown(address) } };
    });
  }

  private list(type: typeof NIC | typeof IP, exchange: Exchange): Answer {
    const [group = ''] = exchange.params;
    this.cloud.requireGroup(group);
    const found = this.cloud.store
      .list(type, exchange.lagMs)
      .filter((one) => one.group.toLowerCase() === group.toLowerCase());
    return this.cloud.page(
      found.map((one) => this.cloud.shown(one)),
      exchange,
    );
  }

  private delete(
    type: typeof NIC | typeof IP,
    [group = '', name = '']: readonly string[],
    user: string,
    code: string,
  ): Answer {
    const { cloud } = this;
    const found = cloud.store.find(type, group, name);
    if (found === undefined) return { status: 204 };
    const userId = textIn(objectIn(found.properties, user), 'id').replace(/\/ipConfigurations\/.*/, '');
    if (cloud.store.get(userId) !== undefined) throw new Refusal(400, code, `${found.id} is used by ${userId}.`);
    const { workMs } = cloud.settings();
    cloud.store.remove(found, workMs);
    return cloud.accepted({ workMs }, 202);
  }
}
