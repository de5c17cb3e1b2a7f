import { reconcileStoreContract } from '../contract/reconcile-store-contract.ts'
import { withDatabase } from '../helpers/database.ts'
import { DatabaseSubject } from './reconcile-store-subject.ts'

const database = withDatabase()

reconcileStoreContract('the store on PostgreSQL', async () => new DatabaseSubject(database().connectionString))
