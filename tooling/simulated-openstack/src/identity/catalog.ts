/** The service catalog. */

import type { OpenStackState } from '../cloud-state.js';
import { REGION } from '../settings.js';

interface Entry {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly path: (projectId: string) => string;
  readonly endpointIds: readonly string[];
}

const INTERFACES = ['internal', 'admin', 'public'] as const;

/** Types and names as in Debian's packages; only cinder's endpoint contains the project. */
const SERVICES: readonly (readonly [type: string, name: string, path: (projectId: string) => string])[] = [
  ['image', 'glance', () => '/image'],
  ['volumev3', 'cinderv3', (projectId) => `/volume/v3/${projectId}`],
  ['network', 'neutron', () => '/network'],
  ['identity', 'keystone', () => '/identity/v3'],
  ['compute', 'nova', () => '/compute/v2.1'],
];

export class Catalog {
  private readonly entries: readonly Entry[];

  constructor(private readonly state: OpenStackState) {
    const { random } = state;
    this.entries = SERVICES.map(([type, name, path]) => ({
      id: random.uuidHex(),
      type,
      name,
      path,
      endpointIds: INTERFACES.map(() => random.uuidHex()),
    }));
  }

  of(projectId: string): readonly object[] {
    return this.entries.map(({ id, type, name, path, endpointIds }) => ({
      endpoints: INTERFACES.map((face, index) => ({
        id: endpointIds[index],
        interface: face,
        region_id: REGION,
        url: this.state.url + path(projectId),
        region: REGION,
      })),
      id,
      type,
      name,
    }));
  }
}
