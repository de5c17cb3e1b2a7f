#!/bin/sh
# Writes .env, the settings of docker-compose.yml that are secret: sh deploy/new-secrets.sh
# Keep a copy as you keep a password, apart from the database: without KEYMESH_KEYS nobody opens the stored secrets.
set -euC
umask 077
hexadecimal() { od -An -N "$1" -tx1 /dev/urandom | tr -d ' \n'; }
if [ -e .env ]; then
  echo '.env exists, and its keys open what is stored. Move it away first if you mean to begin anew.' >&2
  exit 1
fi
cat > .env <<END
POSTGRES_PASSWORD=$(hexadecimal 24)
KEYMESH_KEYS=k-$(hexadecimal 6):$(head -c 32 /dev/urandom | base64 | tr -d '\n')
KEYMESH_ADMIN_PASSWORD=$(hexadecimal 16)
BROKER_ADMIN_PASSWORD=$(hexadecimal 16)
END
echo 'Wrote .env: the password of the administrator "admin" is KEYMESH_ADMIN_PASSWORD in it.'
