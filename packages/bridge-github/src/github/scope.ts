/** The organization, repository or enterprise whose jobs a bridge serves, given by its page. */

export interface GithubScope {
  /** Address of the page, without a slash at its end. */
  readonly url: string;
  /** Address of the REST API. */
  readonly apiUrl: string;
  /** Path of the call that returns a registration token. */
  readonly registrationPath: string;
}

/** Returns undefined for an address that is none of the three. */
export function scopeOf(text: string): GithubScope | undefined {
  const url = URL.parse(text);
  if (url === null || url.search !== '' || url.hash !== '') return undefined;
  const parts = url.pathname.split('/').filter((part) => part !== '');
  const path = registrationPath(parts);
  if (path === undefined) return undefined;
  return {
    url: `${url.origin}/${parts.join('/')}`,
    apiUrl: apiUrlOf(url),
    registrationPath: `${path}/actions/runners/registration-token`,
  };
}

function registrationPath([first, second, ...more]: readonly string[]): string | undefined {
  if (first === undefined || more.length > 0) return undefined;
  if (second === undefined) return `/orgs/${first}`;
  return first.toLowerCase() === 'enterprises' ? `/enterprises/${second}` : `/repos/${first}/${second}`;
}

/** Hosts of GitHub have an API host; an Enterprise Server has its API below its own address. */
function apiUrlOf({ protocol, host }: URL): string {
  if (host === 'github.com' || host === 'www.github.com') return `${protocol}//api.github.com`;
  return host.endsWith('.ghe.com') ? `${protocol}//api.${host}` : `${protocol}//${host}/api/v3`;
}
