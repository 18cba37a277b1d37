package main

import (
	"math"
	"testing"
	"time"
)

func TestArrivalsComeAtTheRateAndOneInAHundredSleeps(t *testing.T) {
	arrivals := drawArrivals(100_000, uniformKeys())
	if last := arrivals[len(arrivals)-1].Due.Seconds(); math.Abs(last-5) > 0.1 {
		t.Errorf("100,000 arrive in %v s", last)
	}
	sleeping := 0
	for index, message := range arrivals {
		if message.Sleeps {
			sleeping++
		}
		if message.Seq != uint64(index) || index > 0 && message.Due < arrivals[index-1].Due {
			t.Fatalf("message %d is out of turn", index)
		}
	}
	if sleeping < 800 || sleeping > 1_200 {
		t.Errorf("%d of 100,000 sleep", sleeping)
	}
}

func TestColdMessagesNeitherSleepNorHaveAFrequentKey(t *testing.T) {
	arrivals := []Message{{Seq: 0, Key: 998}, {Seq: 1, Key: 999}, {Seq: 2, Key: 5_000, Sleeps: true}, {Seq: 3, Key: 999_999}}
	sheet := &sheet{took: []time.Duration{1, 2, 3, 4}}
	if cold := sheet.cold(arrivals); len(cold) != 2 || cold[0] != 2 || cold[1] != 4 {
		t.Errorf("%v", cold)
	}
}

func TestAPercentileIsATimeThatOccurred(t *testing.T) {
	var times []time.Duration
	for millis := 1_000; millis > 0; millis-- {
		times = append(times, time.Duration(millis))
	}
	for part, expected := range map[float64]time.Duration{0: 1, 0.5: 500, 0.99: 990, 1: 1_000} {
		if got := percentile(times, part); got != expected {
			t.Errorf("%v: %v", part, got)
		}
	}
}

func TestNothingIsSentBeforeItIsDue(t *testing.T) {
	sheet := &sheet{}
	arrivals := drawArrivals(200, uniformKeys())
	err := sheet.play(arrivals, func(message Message) error {
		if early := message.Due - time.Since(sheet.start); early > 0 {
			t.Errorf("message %d is sent %v too early", message.Seq, early)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
