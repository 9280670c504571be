/** Where the Debian packages put ZooKeeper, and what to do when they are missing. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';

const JAR_FOLDER = '/usr/share/java';

/**
 * `netty-codec` is not in the manifest of Debian's zookeeper.jar, yet a server that uses Netty (TLS does) fails every
 * connection without it. The others are found through the manifest.
 */
const JARS = ['zookeeper.jar', 'slf4j-log4j12.jar', 'log4j-1.2.jar', 'netty-codec.jar'] as const;

const REMEDY = 'install it: apt-get install -y --no-install-recommends zookeeper libnetty-java';

/** The class path of a server whose configuration is in `configurationFolder`. Throws when something is missing. */
export function classPath(configurationFolder: string): string {
  const jars = JARS.map((jar) => join(JAR_FOLDER, jar));
  const missing = jars.filter((jar) => !existsSync(jar));
  if (missing.length > 0) throw new Error(`ZooKeeper is not installed (no ${missing.join(', ')}); ${REMEDY}`);
  const programs = (process.env['PATH'] ?? '').split(':').map((folder) => join(folder, 'java'));
  if (!programs.some((program) => existsSync(program))) {
    throw new Error(`ZooKeeper needs a Java runtime, and there is no "java" on the PATH; ${REMEDY}`);
  }
  return [configurationFolder, ...jars].join(':');
}
