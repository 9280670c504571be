/** Real ZooKeeper servers for development and tests. */
export { expiredCertificate, makeCertificates, type Certificates } from './certificates.js';
export { zooKeeperForTests, type ZooKeeperForTests } from './for-tests.js';
export { startZooKeeper, type ClientTlsFiles, type RunningZooKeeper, type StartOptions } from './zookeeper.js';
export { freePorts } from './ports.js';
