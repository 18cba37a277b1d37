//! Every scenario, as a test of its name.

macro_rules! tried {
    ($($of:ident: $($name:ident),+;)+) => {
        $(mod $of { $(#[test] fn $name() { models::scenarios::$of::$name(); })+ })+
    };
}

tried! {
    wakes:
        a_sender_and_the_last_worker_that_lies_down,
        two_senders_and_one_worker,
        two_wakers_and_one_who_is_idle,
        a_sender_and_a_handler_that_suspends,
        an_order_for_a_worker_that_lies_down,
        a_worker_that_dies_with_a_wake_up_in_its_hands,
        a_lingerer_and_senders_on_its_thread,
        the_end_of_a_pool_and_a_worker_that_lies_down,
        a_watch_that_turns_away_and_a_bell_that_rings;
    permits:
        one_who_waits_and_a_worker_that_starts_a_message,
        two_who_wait_and_one_of_them_goes,
        no_more_permits_than_the_bound,
        credit_left_in_a_shard_and_one_who_waits,
        one_who_waits_and_a_pool_that_closes,
        one_who_waits_and_a_pool_that_closes_and_opens_again;
    shards:
        a_sender_and_the_only_worker,
        a_sender_at_the_bound_and_the_only_worker,
        two_workers_that_keep_to_a_shard,
        two_workers_of_which_one_suspends,
        a_worker_that_departs_and_leaves_work_behind,
        a_message_that_comes_back_and_a_worker_that_lies_down,
        a_sender_elsewhere_that_calls_a_worker_to_its_thread,
        a_push_and_a_pool_that_closes;
    mailboxes:
        mail_for_a_worker_that_lies_down,
        one_who_waits_for_a_place_in_a_mailbox,
        one_who_waits_for_a_place_and_a_message_that_is_evicted,
        mail_for_a_worker_that_leaves,
        mail_for_the_next_worker_of_a_slot,
        a_mailbox_that_is_made_while_the_pool_closes,
        a_signal_for_a_worker_that_lies_down,
        a_signal_beside_mail,
        mail_that_is_put_back_for_any_other,
        mail_and_messages_for_anybody,
        mail_that_comes_back,
        urgent_messages_beside_the_queue,
        urgent_messages_and_two_workers,
        urgent_messages_of_another_shard_in_a_keyed_pool,
        urgent_messages_of_a_key_that_waits_in_a_lane;
    keys:
        one_worker_drains_what_one_sends,
        two_workers_take_turns_with_the_token,
        a_key_that_suspends_gets_a_lane,
        a_token_is_taken_from_who_computes,
        a_token_stays_with_who_compares_keys,
        a_key_waits_for_its_next_attempt;
    runs:
        one_worker_that_steps_and_a_sender,
        a_token_is_taken_between_two_steps,
        a_token_without_a_key_is_taken_between_two_steps,
        a_token_is_taken_from_who_steps,
        a_key_that_suspends_in_a_run,
        urgent_messages_in_a_run,
        a_key_with_many_messages_in_a_run,
        callers_of_a_keyed_pool;
    in_place:
        a_task_that_is_called_while_it_is_driven,
        a_task_that_is_driven_by_two,
        a_task_that_is_dropped_while_it_is_driven,
        work_that_ends_while_it_is_driven,
        work_that_panics_while_it_is_driven,
        work_whose_drop_panics_while_it_is_driven,
        the_next_task_of_a_slot,
        callers_and_a_worker_that_lies_down,
        a_caller_and_a_worker_that_is_dropped;
}
