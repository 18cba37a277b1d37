//! Calls in place: whose task a handler runs in.

use greenroom::prelude::*;

/// Answers with the task that it is polled in.
struct Where;

impl Actor for Where {
    type Message = ();
    type Reply = tokio::task::Id;
    type Error = ();

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<tokio::task::Id, ()> {
        Ok(tokio::task::id())
    }
}

#[tokio::test]
async fn a_quick_handler_runs_in_its_callers_task_where_that_is_asked_for() {
    for in_place in [false, true] {
        let pool = Pool::new(|_| Where).workers(2);
        let pool = if in_place { pool.calls_in_place() } else { pool };
        let pool = pool.spawn().await.unwrap();
        let address = pool.address();
        let caller = async move {
            let mut own = 0;
            for _ in 0..1_000 {
                own += u32::from(address.call(()).await.unwrap() == tokio::task::id());
            }
            own
        };
        let own = tokio::spawn(caller).await.unwrap();
        assert_eq!(own > 900, in_place, "{own} of 1,000");
        assert!(in_place || own == 0);
    }
}
