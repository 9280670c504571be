/** All deliberate defects, by the part of the repository that they change. */

import type { Mutation } from '../mutation.js';
import { BRIDGE_GITHUB } from './bridge-github.js';
import { BUILDER } from './builder.js';
import { CLI } from './cli.js';
import { CONFIG } from './config.js';
import { CORE } from './core.js';
import { CREATE_DRIVER } from './create-driver.js';
import { DAEMON } from './daemon.js';
import { DRIVER_AWS } from './driver-aws.js';
import { DRIVER_AZURE } from './driver-azure.js';
import { DRIVER_EXAMPLE } from './driver-example.js';
import { DRIVER_GCE } from './driver-gce.js';
import { DRIVER_KUBERNETES } from './driver-kubernetes.js';
import { DRIVER_METASTATIC } from './driver-metastatic.js';
import { DRIVER_OPENSTACK } from './driver-openstack.js';
import { DRIVER_STATIC } from './driver-static.js';
import { FAIR_SHARES } from './fair-shares.js';
import { GATEWAY } from './gateway.js';
import { INTERRUPTIONS } from './interruptions.js';
import { LAUNCHER } from './launcher.js';
import { IMAGES } from './launcher-images.js';
import { LAUNCHER_READY } from './launcher-ready.js';
import { LAUNCHER_TROUBLE } from './launcher-trouble.js';
import { PYYAML } from './pyyaml.js';
import { REQUESTOR } from './requestor.js';
import { SEVERAL_LAUNCHERS } from './several-launchers.js';
import { STORE } from './store.js';
import { STORE_SUSPENSIONS } from './store-suspensions.js';
import { ZOOKEEPER } from './zookeeper.js';

export const MUTATIONS: readonly Mutation[] = [
  ...BRIDGE_GITHUB,
  ...BUILDER,
  ...CLI,
  ...CONFIG,
  ...CORE,
  ...CREATE_DRIVER,
  ...DAEMON,
  ...DRIVER_AWS,
  ...DRIVER_AZURE,
  ...DRIVER_EXAMPLE,
  ...DRIVER_GCE,
  ...DRIVER_KUBERNETES,
  ...DRIVER_METASTATIC,
  ...DRIVER_OPENSTACK,
  ...DRIVER_STATIC,
  ...FAIR_SHARES,
  ...GATEWAY,
  ...INTERRUPTIONS,
  ...LAUNCHER,
  ...IMAGES,
  ...LAUNCHER_READY,
  ...LAUNCHER_TROUBLE,
  ...PYYAML,
  ...REQUESTOR,
  ...SEVERAL_LAUNCHERS,
  ...STORE,
  ...STORE_SUSPENSIONS,
  ...ZOOKEEPER,
];
