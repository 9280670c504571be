# Sourced by ./demo and ./test: makes a machine that has Node.js and nothing else able to build and run this checkout.
#
# What is there is left alone. pnpm goes into .tools/ of the checkout; Debian packages are installed with apt-get, with
# sudo when not root. Everything that a step says goes into a log file, whose tail is shown when the step fails.

# The one version that the workspace is pinned to (packageManager in package.json).
PNPM_VERSION=$(sed -nE 's/.*"packageManager": "pnpm@([0-9.]+)".*/\1/p' package.json)
readonly PNPM_VERSION
readonly TOOLS_DIR="$PWD/.tools"
readonly LOG_DIR="$TOOLS_DIR/logs"
readonly LOG_TAIL_LINES=40

export TURBO_TELEMETRY_DISABLED=1 DO_NOT_TRACK=1 TURBO_NO_UPDATE_NOTIFIER=1 NPM_CONFIG_UPDATE_NOTIFIER=false
export PATH="$TOOLS_DIR/node_modules/.bin:$PWD/node_modules/.bin:$PATH"

mkdir -p "$LOG_DIR"

# Prints a line with the seconds since the script began.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

# fail MESSAGE...: says why there is no going on, and ends the script.
fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  if [ $# -gt 0 ]; then printf '       %s\n' "$@" >&2; fi
  exit 1
}

# try_step NAME DESCRIPTION COMMAND...: runs a command quietly, what it says goes into the log of that name.
try_step() {
  local log="$LOG_DIR/$1.log"
  say "$2"
  shift 2
  "$@" >"$log" 2>&1 </dev/null
}

# step NAME DESCRIPTION COMMAND...: the same; shows the end of what the command said, and ends the script, when it fails.
step() {
  local log="$LOG_DIR/$1.log" began=$SECONDS status=0
  try_step "$@" || status=$?
  if [ "$status" -ne 0 ]; then
    printf -- '--- last lines of %s\n' "$log" >&2
    tail -n "$LOG_TAIL_LINES" "$log" >&2
    fail "$1 failed with status $status after $((SECONDS - began)) s: ${*:3}" "Everything it said is in $log."
  fi
}

require_node() {
  command -v node >/dev/null || fail "node is not on the PATH." "Install Node.js 20.18.1 or newer and try again."
  node -e 'const [a, b, c] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && (b > 18 || (b === 18 && c > 0))) ? 0 : 1)' ||
    fail "Node.js $(node --version) is too old." "Install Node.js 20.18.1 or newer and try again."
  command -v npm >/dev/null || fail "npm is not on the PATH." "It comes with Node.js; install it and try again."
}

have_zookeeper() { command -v java >/dev/null && [ -e /usr/share/java/zookeeper.jar ]; }
have_netty() { [ -e /usr/share/java/netty-codec.jar ]; }
have_python() { [ -x /usr/bin/python3 ] && /usr/bin/python3 -c "import $1" 2>/dev/null; }
have_sshd() { command -v sshd >/dev/null || [ -x /usr/sbin/sshd ]; }
have_rsync() { command -v rsync >/dev/null; }
have_openssl() { command -v openssl >/dev/null; }
have_curl() { command -v curl >/dev/null; }
have_git() { command -v git >/dev/null; }
have_prometheus() { [ -x /usr/bin/prometheus ] && [ -x /usr/bin/promtool ]; }
have_systemd() { command -v systemd-analyze >/dev/null; }
have_chromium() { [ -x /usr/bin/chromium ]; }
have_fish() { command -v fish >/dev/null; }
have_zsh() { command -v zsh >/dev/null; }

# Lists in the array "missing" those of the named Debian packages that are not there, judged by what we use of them.
find_missing_packages() {
  local package
  missing=()
  for package in "$@"; do
    case $package in
      zookeeper) have_zookeeper ;;
      libnetty-java) have_netty ;;
      python3-kazoo) have_python kazoo ;;
      python3-googleapi) have_python 'googleapiclient, google_auth_httplib2' ;;
      python3-openstackclient) have_python 'openstack, openstackclient.shell' ;;
      python3-yaml) have_python yaml ;;
      openssh-server) have_sshd ;;
      rsync) have_rsync ;;
      openssl) have_openssl ;;
      curl) have_curl ;;
      git) have_git ;;
      chromium) have_chromium ;;
      prometheus) have_prometheus ;;
      systemd) have_systemd ;;
      fish) have_fish ;;
      zsh) have_zsh ;;
      *) fail "no way to tell whether the package $package is there" ;;
    esac || missing+=("$package")
  done
}

# require_packages PACKAGE...: installs the Debian packages that are missing.
require_packages() {
  local missing=() as_root=()
  find_missing_packages "$@"
  [ ${#missing[@]} -gt 0 ] || return 0
  local by_hand="As root: apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  command -v apt-get >/dev/null ||
    fail "these are missing, and there is no apt-get to install them with: ${missing[*]}" "$by_hand (on Debian 12)"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "these are missing, and installing them needs root or sudo: ${missing[*]}" "$by_hand"
    # Asks for a password here, in sight, and not inside of a step whose output goes into a log.
    sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } ||
      fail "these are missing, and sudo does not let us install them: ${missing[*]}" "$by_hand"
    as_root=(sudo)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  local install=("${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}")
  local what="installing Debian packages that are missing: ${missing[*]}"
  # The lists of packages are fetched only when it does not work without: on a fresh machine there are none.
  if ! { apt-get install -s --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && try_step apt-install "$what" "${install[@]}"; }; then
    step apt-update 'fetching the lists of Debian packages' "${as_root[@]}" apt-get update
    step apt-install "$what" "${install[@]}"
  fi
  find_missing_packages "$@"
  [ ${#missing[@]} -eq 0 ] ||
    fail "apt-get installed ${missing[*]}, but what is used of them is not there." "See $LOG_DIR/apt-install.log."
}

require_pnpm() {
  if [ "$("$TOOLS_DIR/node_modules/.bin/pnpm" --version 2>/dev/null)" = "$PNPM_VERSION" ]; then return; fi
  step pnpm "installing pnpm $PNPM_VERSION into .tools/ of this checkout" \
    npm install --prefix "$TOOLS_DIR" --no-audit --no-fund --loglevel=error "pnpm@$PNPM_VERSION"
}

# Installs the dependencies of all packages exactly as the lockfile says. Takes a second when they are there.
require_dependencies() {
  CI=true step dependencies 'installing the dependencies (pnpm install)' pnpm install --frozen-lockfile --prefer-offline
}

# prepare DEBIAN_PACKAGE...: all of the above.
prepare() {
  require_node
  require_packages "$@"
  require_pnpm
  require_dependencies
}
