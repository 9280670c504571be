/** The clouds.yaml of the sample cloud. */

import { REGION, SAMPLE_PASSWORD } from './settings.js';

/**
 * Returns a clouds.yaml: `real` and `limited` are ordinary users, `real-admin` is the administrator, `real-appcred` an
 * application credential.
 */
export function cloudsYamlText(authUrl: string): string {
  const byPassword = (project: string): object => ({
    auth: {
      auth_url: authUrl,
      username: project,
      user_domain_name: 'Default',
      password: SAMPLE_PASSWORD,
      project_name: project,
      project_domain_name: 'Default',
    },
  });
  const clouds = {
    real: byPassword('demo'),
    limited: byPassword('limited'),
    'real-admin': byPassword('admin'),
    'real-appcred': {
      auth_type: 'v3applicationcredential',
      auth: {
        auth_url: authUrl,
        username: 'demo',
        user_domain_name: 'Default',
        application_credential_name: 'demo-app',
        application_credential_secret: SAMPLE_PASSWORD,
      },
    },
  };
  const common = { region_name: REGION, identity_api_version: 3, interface: 'public' };
  const complete = Object.entries(clouds).map(([name, cloud]) => [name, { ...cloud, ...common }]);
  // JSON is YAML.
  return `${JSON.stringify({ clouds: Object.fromEntries(complete) as unknown }, undefined, 2)}\n`;
}
