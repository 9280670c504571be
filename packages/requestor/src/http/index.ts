/** A client of the gateway's leases over HTTP, which needs no ZooKeeper. */
export * from './documents.js';
export * from './lease-client.js';
