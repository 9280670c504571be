// Writes the parts of published OpenAPI documents that the simulation validates: see README.md.
import { readFileSync, writeFileSync } from 'node:fs';

const KUBERNETES = [
  'io.k8s.api.core.v1.Namespace',
  'io.k8s.api.core.v1.Pod',
  'io.k8s.api.core.v1.ServiceAccount',
  'io.k8s.api.core.v1.Secret',
  'io.k8s.api.core.v1.ConfigMap',
  'io.k8s.api.core.v1.ResourceQuota',
  'io.k8s.api.core.v1.Event',
  'io.k8s.api.rbac.v1.Role',
  'io.k8s.api.rbac.v1.RoleBinding',
  'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions',
];
const OPENSHIFT = ['com.github.openshift.api.project.v1.Project', 'com.github.openshift.api.project.v1.ProjectRequest'];

const [, , kubernetes, openshift, commit] = process.argv;
write('kubernetes.json', kubernetes, KUBERNETES, 'kube-apiserver v1.20.2, /openapi/v2, without descriptions');
write('openshift.json', openshift, OPENSHIFT, `openshift/api ${commit}, openapi/openapi.json, without descriptions`);

/** Kubernetes' own definitions come from the first document only. */
function write(target, source, kinds, origin) {
  const { definitions } = JSON.parse(readFileSync(source, 'utf8'));
  const found = {};
  const wanted = [...kinds];
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    if (found[name] !== undefined || (kinds === OPENSHIFT && name.startsWith('io.k8s.'))) continue;
    found[name] = strip(definitions[name]);
    for (const [, ref] of JSON.stringify(found[name]).matchAll(/"#\/definitions\/([^"]+)"/g)) wanted.push(ref);
  }
  const sorted = Object.fromEntries(Object.entries(found).sort(([a], [b]) => a.localeCompare(b)));
  const text = JSON.stringify({ origin, license: 'Apache-2.0', definitions: sorted }, null, 2);
  writeFileSync(new URL(target, import.meta.url), `${text}\n`);
}

function strip(value) {
  if (Array.isArray(value)) return value.map(strip);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(
    ([key, item]) => !key.startsWith('x-kubernetes') && !(key === 'description' && typeof item === 'string'),
  );
  return Object.fromEntries(kept.map(([key, item]) => [key, strip(item)]));
}
