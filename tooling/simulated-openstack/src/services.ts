/** Names of the OpenStack services in the catalog and in operations. */

export type ServiceName = 'identity' | 'compute' | 'image' | 'network' | 'volume';
