/** Requests nodes from Nodepool: connect, acquire, use, return. */
export * from './api.js';
export * from './errors.js';
export { Lease } from './lease.js';
export { SubmittedRequest } from './node-request.js';
export { connectRequestor, openRequestor, Requestor, type AcquireOptions, type RequestorOptions } from './requestor.js';
export { requestReasons } from './pools.js';
export { leasedNode } from './record.js';
