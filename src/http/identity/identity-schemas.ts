import { z } from 'zod'
import { nameProblem } from '../../domain/names.ts'
import { PERMISSIONS, type Permission, USER_ROLES, type UserRole } from '../../domain/permissions.ts'
import { accountNameProblem, PASSWORD_MAX_LENGTH, passwordProblem, userNameProblem } from '../../domain/user-names.ts'

/** Text that a rule of the domain judges; the rule's sentence is the validation detail. */
const ruled = (problemOf: (text: string) => string | null) =>
  z.string().superRefine((text, context) => {
    const problem = problemOf(text)
    if (problem !== null) context.addIssue({ code: 'custom', message: problem })
  })

export const userName = ruled(userNameProblem).meta({ description: 'What the user signs in by.', example: 'ada' })
export const accountName = ruled(accountNameProblem).meta({ description: 'Stands in paths.', example: 'default' })
export const newPassword = ruled(passwordProblem).meta({ description: '8 to 256 characters.' })
/** Given to prove who one is: what it must look like is nobody's business. */
export const presentPassword = z.string().max(PASSWORD_MAX_LENGTH * 4)
export const tokenName = ruled(nameProblem).meta({ description: 'For people.', example: 'gateway' })

export const permissions = z
  .array(z.enum(PERMISSIONS))
  .min(1)
  .max(PERMISSIONS.length * 2)
  .transform((given): Permission[] => PERMISSIONS.filter((permission) => given.includes(permission)))
  .describe('Any of the ten.')

export const roles = z
  .array(z.enum(USER_ROLES))
  .min(1)
  .max(USER_ROLES.length * 2)
  .transform((given): UserRole[] => USER_ROLES.filter((role) => given.includes(role)))

/** Looked up, not made: what no name looks like is simply not there. */
export const nameParameter = z.string().min(1).max(256)

export const epochMs = z.int().describe('Epoch milliseconds.')
export const userToken = z.strictObject({ token: z.string().describe('A JWT.') })

export const IDENTITY = ['Identity']
