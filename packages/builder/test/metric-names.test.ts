/** The keys sent to statsd, which dashboards and alerts of a Python Nodepool use. */

import { expect, it } from '@jest/globals';
import { MetricsRegistry } from '@nodepool/daemon';
import { VirtualClock } from '@nodepool/core/testing';
import * as metrics from '../src/builder-metrics.js';

const image = 'debian.12';
const provider = 'cloud-a.one';
const host = 'nb01.example.org';

/** Reports every metric of the builder once and returns the keys sent to statsd, by kind. */
async function reported(): Promise<Record<string, string[]>> {
  const keys: Record<string, string[]> = { counter: [], timer: [], gauge: [] };
  const registry = new MetricsRegistry({
    clock: new VirtualClock(),
    prometheus: undefined,
    onError: (error) => {
      throw error;
    },
    statsd: {
      increment: (key) => void keys['counter']?.push(key),
      timing: (key) => void keys['timer']?.push(key),
      gauge: (key) => void keys['gauge']?.push(key),
      close: () => Promise.resolve(),
    },
  });
  registry.observe(metrics.BUILD_DURATION, { image }, 1000);
  registry.observe(metrics.UPLOAD_DURATION, { image, provider }, 1000);
  registry.count(metrics.FAILED_BUILDS, { image, reason: 'timeout' });
  registry.count(metrics.FAILED_UPLOADS, { image, provider, reason: 'quota' });
  registry.set(metrics.BUILD_EXIT_CODE, { image }, 0);
  registry.set(metrics.LAST_BUILD, { image }, 1);
  registry.set(metrics.IMAGE_SIZE, { image, format: 'qcow2' }, 1);
  registry.set(metrics.BUILD_REQUESTS, {}, 1);
  registry.set(metrics.IMAGE_BUILD_REQUESTS, { image }, 1);
  for (const what of ['current_builds', 'current_uploads', 'build_workers', 'upload_workers']) {
    registry.set(metrics.BUILDER_WORK, { host, what }, 1);
  }
  registry.set(metrics.BUILD_STATE, { host, image }, 1);
  registry.set(metrics.UPLOAD_STATE, { host, image, provider }, 2);
  registry.set(metrics.UPLOADED_BYTES, { host, image, provider }, 2);
  await registry.close();
  return keys;
}

it('metric names equal those of a Python builder', async () => {
  const keys = await reported();
  expect(keys['timer']).toEqual([
    'nodepool.dib_image_build.debian.12.status.duration',
    'nodepool.image_update.debian.12.cloud-a.one',
  ]);
  expect(keys['counter']).toEqual(keys['timer']);
  expect(new Set(keys['gauge'])).toEqual(
    new Set([
      'nodepool.dib_image_build.debian.12.qcow2.size',
      'nodepool.dib_image_build.debian.12.status.rc',
      'nodepool.dib_image_build.debian.12.status.last_build',
      'nodepool.image_build_requests',
      'nodepool.image.debian.12.image_build_requests',
      'nodepool.builder.nb01_example_org.current_builds',
      'nodepool.builder.nb01_example_org.current_uploads',
      'nodepool.builder.nb01_example_org.build_workers',
      'nodepool.builder.nb01_example_org.upload_workers',
      'nodepool.builder.nb01_example_org.image.debian.12.build.state',
      'nodepool.builder.nb01_example_org.image.debian.12.provider.cloud-a.one.upload.state',
    ]),
  );
});
