#!/usr/bin/env node
import process from 'node:process'
import { runCommandLine } from './cli/program.ts'

process.exitCode = await runCommandLine(process.argv, { out: process.stdout, err: process.stderr })
