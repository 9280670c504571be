/** The services of an OpenStack, as the catalog and the operations name them. */

export type ServiceName = 'identity' | 'compute' | 'image' | 'network' | 'volume';

export const SERVICE_NAMES: readonly ServiceName[] = ['identity', 'compute', 'image', 'network', 'volume'];
