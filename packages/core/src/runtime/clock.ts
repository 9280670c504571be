/** Time and waiting; see the ZooKeeper client's `Clock`, which is the same. */
export {
  abortReason,
  sleep,
  systemClock,
  VirtualClock,
  type Clock,
  type Timer,
  type VirtualClockOptions,
} from '@nodepool/zookeeper';
