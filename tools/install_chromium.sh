#!/usr/bin/env bash
# Installs Debian's Chromium and its driver, with which tests look at the report. It never fails: without a browser, without
# rights or without a network those tests are skipped, and say so.
set -u
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "no apt-get here: the browser tests of the report will be skipped"
  exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo --non-interactive)
fi
export DEBIAN_FRONTEND=noninteractive
{
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends chromium chromium-driver
} >/dev/null 2>&1 || echo "Chromium could not be installed: the browser tests of the report will be skipped"
exit 0
