/** Time and waiting; see the ZooKeeper client's `Clock`, which is the same. */
export { abortReason, sleep, systemClock, type Clock, type Timer } from '@nodepool/zookeeper';
