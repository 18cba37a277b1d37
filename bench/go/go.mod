module greenroom/bench/go

go 1.25.0

require (
	ergo.services/ergo v1.999.320 // v3.2.0
	github.com/anthdm/hollywood v1.0.5
	github.com/fxsml/gopipe/message v0.17.1
)

require (
	github.com/DataDog/gostackparse v0.7.0 // indirect
	github.com/fxsml/gopipe/channel v0.16.0 // indirect
	github.com/fxsml/gopipe/pipe v0.17.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	github.com/zeebo/xxh3 v1.0.2 // indirect
	google.golang.org/protobuf v1.32.0 // indirect
)

// The same release, fetched by the path of its repository.
replace ergo.services/ergo => github.com/ergo-services/ergo v1.999.320
