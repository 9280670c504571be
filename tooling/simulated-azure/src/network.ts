/** Network interfaces, public addresses and networks. Unused interfaces and addresses can be deleted. */

import type { JsonObject } from '@nodepool/core';
import type { Cloud } from './cloud.js';
import type { Answer } from '@nodepool/simulated-cloud';
import { published, type AzureContext, type AzureRoute } from './request-context.js';
import { listIn, objectIn, textIn } from './fields.js';
import { notFound, ArmError } from './api-error.js';
import { SAMPLE } from './settings.js';
import { idOf, type Resource } from './store.js';

const NIC = 'Microsoft.Network/networkInterfaces';
const IP = 'Microsoft.Network/publicIPAddresses';
const NETWORK = 'Microsoft.Network/virtualNetworks';

export class Networks {
  constructor(private readonly cloud: Cloud) {}

  routes(): readonly AzureRoute[] {
    const { cloud } = this;
    const route = (operation: string, name: string, handle: AzureRoute['handle']): AzureRoute =>
      published(cloud.network, operation, name, handle);
    const patch = (type: typeof NIC | typeof IP, context: AzureContext): Answer => {
      cloud.patch(type, context);
      return this.get(type, context);
    };
    return [
      route('networkInterfaces.get', 'networkInterfaces.get', (context) => this.get(NIC, context)),
      route('networkInterfaces.list', 'networkInterfaces.list', (context) => cloud.list(NIC, context)),
      route('networkInterfaces.patch', 'networkInterfaces.updateTags', (context) => patch(NIC, context)),
      route('networkInterfaces.delete', 'networkInterfaces.delete', ({ params }) =>
        this.delete(NIC, params, 'virtualMachine', 'NicInUse'),
      ),
      route('publicIPAddresses.get', 'publicIPAddresses.get', (context) => this.get(IP, context)),
      route('publicIPAddresses.list', 'publicIPAddresses.list', (context) => cloud.list(IP, context)),
      route('publicIPAddresses.patch', 'publicIPAddresses.updateTags', (context) => patch(IP, context)),
      route('publicIPAddresses.delete', 'publicIPAddresses.delete', ({ params }) =>
        this.delete(IP, params, 'ipConfiguration', 'PublicIPAddressCannotBeDeleted'),
      ),
      route('virtualNetworks.get', 'virtualNetworks.get', ({ params }) => this.network(params)),
      route('virtualNetworks.list', 'virtualNetworks.list', ({ params }) => this.networks(params)),
      route('subnets.get', 'subnets.get', ({ params }) => this.subnet(params)),
    ];
  }

  private get(type: typeof NIC | typeof IP, context: AzureContext): Answer {
    const found = this.cloud.find(type, context.params);
    if (type === IP) return { status: 200, body: this.address(found) };
    const expand = context.query.get('$expand')?.toLowerCase() === 'ipconfigurations/publicipaddress';
    return this.cloud.get(NIC, context, expand ? { ipConfigurations: this.expanded(found) } : {});
  }

  /** Returns an address; `ipAddress` is missing until it is assigned. */
  private address(address: Resource): JsonObject {
    const shown = this.cloud.shown(address);
    const { ipAddress: _, ...unassigned } = objectIn(shown, 'properties');
    return this.cloud.store.stateOf(address) === 'Creating' ? { ...shown, properties: unassigned } : shown;
  }

  private expanded(nic: Resource): readonly JsonObject[] {
    return listIn(nic.properties, 'ipConfigurations').map((configuration) => {
      const properties = objectIn(configuration, 'properties');
      const address = this.cloud.store.get(textIn(objectIn(properties, 'publicIPAddress'), 'id'));
      if (address === undefined) return configuration;
      return { ...configuration, properties: { ...properties, publicIPAddress: this.address(address) } };
    });
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
    if (cloud.store.get(userId) !== undefined) throw new ArmError(400, code, `${found.id} is used by ${userId}.`);
    const { workMs } = cloud.settings;
    cloud.store.remove(found, workMs);
    return cloud.accepted({ workMs }, 202);
  }

  private networks([group = '']: readonly string[]): Answer {
    this.cloud.requireGroup(group);
    const here = group.toLowerCase() === SAMPLE.resourceGroup;
    return { status: 200, body: { value: here ? [network()] : [] } };
  }

  private network([group = '', name = '']: readonly string[]): Answer {
    this.cloud.requireGroup(group);
    const here = group.toLowerCase() === SAMPLE.resourceGroup && name.toLowerCase() === SAMPLE.network.toLowerCase();
    if (!here) throw notFound(idOf(NETWORK, group, name));
    return { status: 200, body: network() };
  }

  private subnet([group = '', name = '', subnetName = '']: readonly string[]): Answer {
    this.network([group, name]);
    if (subnetName.toLowerCase() !== SAMPLE.subnet) {
      throw notFound(`${idOf(NETWORK, group, name)}/subnets/${subnetName}`);
    }
    return { status: 200, body: subnet() };
  }
}

function network(): JsonObject {
  const id = idOf(NETWORK, SAMPLE.resourceGroup, SAMPLE.network);
  const addressSpace = { addressPrefixes: ['10.0.0.0/8', 'fd00::/48'] };
  const properties = { addressSpace, subnets: [subnet()], provisioningState: 'Succeeded' };
  return { id, name: SAMPLE.network, type: NETWORK, location: SAMPLE.location, properties };
}

function subnet(): JsonObject {
  const id = `${idOf(NETWORK, SAMPLE.resourceGroup, SAMPLE.network)}/subnets/${SAMPLE.subnet}`;
  const properties = { addressPrefixes: ['10.0.0.0/8', 'fd00::/64'], provisioningState: 'Succeeded' };
  return { id, name: SAMPLE.subnet, properties };
}
