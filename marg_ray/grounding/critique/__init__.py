"""What can be measured on a draft beside a reviewer's opinion."""
