package runner_test

import _ "broken/internal/app" // far more than a service's tests need
