/** The files of Debian's ZooKeeper packages, and the remedy if they are missing. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';

const JAR_FOLDER = '/usr/share/java';

/**
 * The manifest of Debian's zookeeper.jar lists all libraries but `netty-codec`, without which a server with Netty
 * (needed for TLS) fails every connection.
 */
const JARS = ['zookeeper.jar', 'slf4j-log4j12.jar', 'log4j-1.2.jar', 'netty-codec.jar'] as const;

const REMEDY = 'install it: apt-get install -y --no-install-recommends zookeeper libnetty-java';

/** Returns the class path of a server with its configuration folder. Throws if a file is missing. */
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
