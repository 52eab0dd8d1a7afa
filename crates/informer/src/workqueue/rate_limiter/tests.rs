//! Compares the delays of every limiter with client-go's delays, and tests the limiters with values that
//! could overflow.

use super::*;

const NOW: Duration = Duration::from_secs(7);

fn millis(delays: impl IntoIterator<Item = u64>) -> Vec<Duration> {
    delays.into_iter().map(Duration::from_millis).collect()
}

fn delays(
    limiter: &mut impl RateLimiter<&'static str>,
    item: &'static str,
    n: usize,
) -> Vec<Duration> {
    (0..n).map(|_| limiter.when(&item, NOW)).collect()
}

#[test]
fn an_item_s_delay_doubles_until_it_is_forgotten() {
    let mut limiter = ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1));
    assert_eq!(delays(&mut limiter, "one", 5), millis([1, 2, 4, 8, 16]));
    assert_eq!(limiter.requeues(&"one"), 5);

    assert_eq!(
        delays(&mut limiter, "two", 2),
        millis([1, 2]),
        "each has its own count"
    );
    assert_eq!(limiter.requeues(&"two"), 2);

    limiter.forget(&"one");
    assert_eq!(limiter.requeues(&"one"), 0);
    assert_eq!(delays(&mut limiter, "one", 1), millis([1]));
    assert_eq!(
        limiter.requeues(&"two"),
        2,
        "only the other item was forgotten"
    );
}

#[test]
fn an_item_s_delay_never_exceeds_the_maximum_however_often_it_fails() {
    let max = Duration::from_secs(1000);
    let mut limiter = ItemExponentialFailure::new(Duration::from_millis(1), max);
    assert_eq!(
        delays(&mut limiter, "one", 20).last(),
        Some(&Duration::from_millis(524_288)),
        "2^19 ms is below the maximum"
    );
    for failure in 20..300 {
        assert_eq!(limiter.when(&"one", NOW), max, "after {failure} failures");
    }
    limiter.failures.insert("one", u32::MAX);
    assert_eq!(limiter.when(&"one", NOW), max);
    assert_eq!(
        limiter.requeues(&"one"),
        u32::MAX,
        "the count does not wrap"
    );
}

#[test]
fn a_base_of_zero_stays_zero_however_often_an_item_fails() {
    let mut limiter = ItemExponentialFailure::new(Duration::ZERO, Duration::from_secs(1));
    assert_eq!(delays(&mut limiter, "one", 300), millis([0; 300]));
}

#[test]
fn a_bucket_without_a_burst_has_a_token_in_every_interval() {
    let mut limiter = Bucket::every(Duration::from_millis(100), 0);
    assert_eq!(delays(&mut limiter, "one", 3), millis([100, 200, 300]));
}

#[test]
fn extreme_settings_of_the_exponential_limiter_do_not_overflow() {
    let mut huge = ItemExponentialFailure::new(Duration::from_secs(86_400), Duration::MAX);
    for _ in 0..200 {
        huge.when(&"one", NOW);
    }
    assert_eq!(huge.when(&"one", NOW), Duration::MAX);

    let mut zero = ItemExponentialFailure::new(Duration::ZERO, Duration::from_secs(1));
    assert_eq!(delays(&mut zero, "one", 40), vec![Duration::ZERO; 40]);

    let mut inverted = ItemExponentialFailure::new(Duration::from_secs(5), Duration::from_secs(1));
    assert_eq!(inverted.when(&"one", NOW), Duration::from_secs(1));

    // The delay after 60 failures would be 2^63 ns, which client-go on amd64 returns as a negative delay.
    let max = Duration::from_secs(1_000);
    let mut power_of_two = ItemExponentialFailure::new(Duration::from_nanos(8), max);
    assert_eq!(delays(&mut power_of_two, "one", 62)[58..], [max; 4]);
}

#[test]
fn the_first_failures_are_fast_and_the_others_slow() {
    let mut limiter = ItemFastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
    assert_eq!(
        delays(&mut limiter, "one", 5),
        millis([5, 5, 5, 10_000, 10_000])
    );
    assert_eq!(limiter.requeues(&"one"), 5);
    assert_eq!(delays(&mut limiter, "two", 1), millis([5]));
    limiter.forget(&"one");
    assert_eq!(limiter.requeues(&"one"), 0);
    assert_eq!(delays(&mut limiter, "one", 1), millis([5]));
}

#[test]
fn a_bucket_lets_its_burst_pass_and_then_one_each_interval() {
    let mut bucket = Bucket::every(Duration::from_millis(100), 3);
    assert_eq!(delays(&mut bucket, "one", 5), millis([0, 0, 0, 100, 200]));
    assert_eq!(
        bucket.when(&"two", NOW + Duration::from_millis(50)),
        Duration::from_millis(250),
        "all items share the tokens, and half of one has been added"
    );
    let limiter: &mut dyn RateLimiter<&str> = &mut bucket;
    limiter.forget(&"one");
    assert_eq!(limiter.requeues(&"one"), 0);

    let full_again = NOW + Duration::from_secs(60);
    let later: Vec<_> = (0..4).map(|_| bucket.when(&"one", full_again)).collect();
    assert_eq!(
        later,
        millis([0, 0, 0, 100]),
        "it holds no more than its burst"
    );
}

#[test]
fn a_bucket_of_extreme_settings_does_not_overflow() {
    let mut never = Bucket::every(Duration::MAX, 1);
    assert_eq!(never.when(&"one", NOW), Duration::ZERO);
    let mut unlimited = Bucket::every(Duration::ZERO, 0);
    assert_eq!(delays(&mut unlimited, "one", 3), vec![Duration::ZERO; 3]);
    let mut no_burst = Bucket::every(Duration::from_millis(10), 0);
    assert_eq!(delays(&mut no_burst, "one", 2), millis([10, 20]));
}

#[test]
fn the_largest_delay_and_the_largest_count_of_several_limiters_win() {
    let mut limiter = MaxOf::new()
        .with(ItemFastSlow::new(
            Duration::from_millis(5),
            Duration::from_secs(3),
            3,
        ))
        .with(ItemExponentialFailure::new(
            Duration::from_millis(1),
            Duration::from_secs(1),
        ));
    assert_eq!(
        delays(&mut limiter, "one", 5),
        millis([5, 5, 5, 3000, 3000])
    );
    assert_eq!(limiter.requeues(&"one"), 5);
    limiter.forget(&"one");
    assert_eq!(limiter.requeues(&"one"), 0, "all of them forget");
    assert_eq!(delays(&mut limiter, "one", 1), millis([5]));

    let mut none = MaxOf::<&str>::new();
    assert_eq!(none.when(&"one", NOW), Duration::ZERO);
}

#[test]
fn no_delay_exceeds_the_maximum_wait() {
    let mut limiter = WithMaxWait::new(
        ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1000)),
        Duration::from_millis(5),
    );
    assert_eq!(delays(&mut limiter, "one", 5), millis([1, 2, 4, 5, 5]));
    assert_eq!(limiter.requeues(&"one"), 5);
    limiter.forget(&"one");
    assert_eq!(delays(&mut limiter, "one", 1), millis([1]));
}

#[test]
fn the_controller_s_limiter_is_exponential_for_one_item_and_a_bucket_for_all() {
    let mut limiter = controller_default();
    assert_eq!(delays(&mut limiter, "one", 4), millis([5, 10, 20, 40]));
    for _ in 4..100 {
        limiter.when(&"one", NOW);
    }
    assert_eq!(limiter.when(&"one", NOW), Duration::from_secs(1000));
    assert_eq!(
        limiter.when(&"another", NOW),
        Duration::from_millis(200),
        "102 tokens at once are two more than the bucket held"
    );
}

#[test]
fn the_item_based_limiter_runs_from_a_millisecond_to_a_thousand_seconds() {
    let mut limiter = item_based_default();
    assert_eq!(delays(&mut limiter, "one", 3), millis([1, 2, 4]));
    assert_eq!(
        delays(&mut limiter, "one", 40).last(),
        Some(&Duration::from_secs(1000))
    );
}

#[test]
fn memory_of_many_failures_is_released_once_forgotten() {
    let mut limiter = ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1));
    for item in 0..100_000 {
        limiter.when(&item, NOW);
    }
    for item in 0..100_000 {
        limiter.forget(&item);
    }
    assert!(
        limiter.failures.capacity() < 5_000,
        "{}",
        limiter.failures.capacity()
    );
}
